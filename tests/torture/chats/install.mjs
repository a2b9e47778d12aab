// transformers and the wheel of trl, at exact versions, in a separate virtual environment. A second run does nothing.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDir, root, run } from '../../../web/toolchain.mjs';

const REQUIREMENTS = join(root, 'tests', 'torture', 'chats', 'requirements.txt');
const PLACE = join(cacheDir, 'chats');

/** Returns the Python that has them. */
export async function python() {
  const [stamp, found] = [join(PLACE, 'stamp'), join(PLACE, 'bin', 'python')];
  const digest = createHash('sha256').update(readFileSync(REQUIREMENTS)).digest('hex');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === digest) return found;
  console.log(`installing into ${PLACE}`);
  rmSync(PLACE, { recursive: true, force: true });
  mkdirSync(PLACE, { recursive: true });
  await run('python3', ['-m', 'venv', PLACE]);
  await run(found, [
    '-m',
    'pip',
    'install',
    '-q',
    '--disable-pip-version-check',
    '--no-deps',
    '--only-binary',
    ':all:',
    '-r',
    REQUIREMENTS,
  ]);
  writeFileSync(stamp, digest);
  return found;
}
