// The release core of an installed or packed package, for a checkout of the same sources, which then compiles nothing.
import { createHash } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from './toolchain.mjs';

/** Files that accompany the module, which the package contains for this purpose. */
const AROUND = join('dist', 'core');

function must(command, args, cwd) {
  const { status, error, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  if (status !== 0) throw new Error(`TABTUNE_PACKAGE: ${command} ${args.join(' ')}: ${error?.message ?? stderr.trim()}`);
  return stdout;
}

/** Returns the folder of the package that `TABTUNE_PACKAGE` names, unpacked into `place` if it is packed; otherwise that of an installed one. */
function packageFolder(place) {
  const named = process.env.TABTUNE_PACKAGE;
  if (!named) return join(root, 'node_modules', 'tabtune');
  if (existsSync(named) && statSync(named).isDirectory()) return named;
  const [{ filename }] = JSON.parse(must('npm', ['pack', '--json', '--pack-destination', place, named], root));
  must('tar', ['-xzf', filename], place);
  return join(place, 'package');
}

/**
 * Copies the core of a package into `folder`, as `build-wasm.mjs` writes it there, if it was built from these inputs; returns whether it was. A
 * package whose module differs from the one in its record is refused.
 * @param {string} inputs @param {string} folder
 */
export function takePackagedCore(inputs, folder) {
  const place = mkdtempSync(join(tmpdir(), 'tabtune-package-'));
  try {
    const from = packageFolder(place);
    const record = join(from, AROUND, 'build.json');
    const recorded = existsSync(record) ? JSON.parse(readFileSync(record, 'utf8')) : undefined;
    if (recorded?.inputs !== inputs) {
      // A person who names a package expects it to be used.
      if (process.env.TABTUNE_PACKAGE)
        console.log(
          `TABTUNE_PACKAGE: ${process.env.TABTUNE_PACKAGE} was ${recorded ? 'made of other sources' : 'packed without a core to take'}`,
        );
      return false;
    }
    const wasm = join(from, 'dist', 'tabtune_bg.wasm');
    const found = createHash('sha256').update(readFileSync(wasm)).digest('hex');
    if (found !== recorded.sha256)
      throw new Error(`${wasm}: expected the SHA-256 ${recorded.sha256} of its build.json, found ${found}. Install the package again.`);
    rmSync(folder, { recursive: true, force: true });
    cpSync(join(from, AROUND), folder, { recursive: true });
    cpSync(wasm, join(folder, 'tabtune_bg.wasm'));
    return true;
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}
