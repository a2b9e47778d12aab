// The release core of an installed or packed package, for a checkout of the same sources, which then compiles nothing.
import { createHash } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { line, root } from './toolchain.mjs';

/** Installs the package that `TABTUNE_PACKAGE` names below a folder: a folder, a tarball or a version. @param {string} named @param {string} place */
function installed(named, place) {
  const [npm, args] =
    line`npm install --prefix ${place} --no-save --ignore-scripts --no-fund --no-audit ${existsSync(named) ? resolve(named) : named}`;
  const { status, error, stderr } = spawnSync(npm, args, { cwd: root, encoding: 'utf8' });
  if (status !== 0)
    throw new Error(`TABTUNE_PACKAGE: npm ${args.join(' ')}: ${error?.message ?? stderr.trim()}`);
}

/**
 * Copies the core of a package into `folder`, as `build-wasm.mjs` writes it there, if it was built from these inputs; returns whether it was. A
 * package whose module differs from the one in its record is refused.
 * @param {string} inputs @param {string} folder
 */
export function takePackagedCore(inputs, folder) {
  const named = process.env.TABTUNE_PACKAGE;
  const place = mkdtempSync(join(tmpdir(), 'tabtune-package-'));
  try {
    if (named) installed(named, place);
    const dist = join(named ? place : root, 'node_modules', 'tabtune', 'dist');
    const record = join(dist, 'core', 'build.json');
    const recorded = existsSync(record) ? JSON.parse(readFileSync(record, 'utf8')) : undefined;
    if (recorded?.inputs !== inputs) {
      // A person who names a package expects it to be used.
      if (named)
        console.log(
          `TABTUNE_PACKAGE: ${named} was ${recorded ? 'made of other sources' : 'packed without a core to take'}`,
        );
      return false;
    }
    const wasm = join(dist, 'tabtune_bg.wasm');
    const found = createHash('sha256').update(readFileSync(wasm)).digest('hex');
    if (found !== recorded.sha256)
      throw new Error(
        `${wasm}: expected the SHA-256 ${recorded.sha256} of its build.json, found ${found}. Install the package again.`,
      );
    rmSync(folder, { recursive: true, force: true });
    cpSync(join(dist, 'core'), folder, { recursive: true });
    cpSync(wasm, join(folder, 'tabtune_bg.wasm'));
    return true;
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}
