// eslint with a cache: node tests/eslint.mjs. What it finds in a file may follow from the types of another one, so that a cache is that of all files.
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { read, root, run } from '../web/toolchain.mjs';

const folder = join(root, 'node_modules', '.cache', 'eslint');
const listed = await read('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '*.ts', '*.mjs', '*.js', '*.json']);
// Without git there is no list, and no cache that would be safe.
const cached = [];
if (listed !== undefined) {
  const hash = createHash('sha256');
  for (const file of listed.split('\0').filter(Boolean)) hash.update(`${file}\0`).update(textOf(file)).update('\0');
  const own = hash.digest('hex');
  for (const old of filesIn(folder)) if (old !== own) rmSync(join(folder, old), { recursive: true, force: true });
  cached.push('--cache', '--cache-location', join(folder, own));
}
process.exitCode = await run('eslint', ['.', ...cached], { allowFailure: true });

/** Returns the contents of a file; none of one that was deleted and is still listed. */
function textOf(file) {
  try {
    return readFileSync(join(root, file));
  } catch {
    return '';
  }
}

function filesIn(path) {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
