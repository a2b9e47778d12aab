// The npm package as its users get it: packed from dist/package and installed into an empty folder, or linked into one as it was built.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { built } from '../../web/core-kind.mjs';
import { STAGED } from '../../web/stage-package.mjs';
import { environment, root } from '../../web/toolchain.mjs';

/** Makes a folder in which the built package is found as if it were installed. */
export function linked() {
  const folder = mkdtempSync(join(tmpdir(), 'tabtune-linked-'));
  const own = join(folder, 'node_modules', 'tabtune');
  mkdirSync(own, { recursive: true });
  symlinkSync(join(root, built.package), join(own, 'dist'));
  copyFileSync(join(root, 'package.json'), join(own, 'package.json'));
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** @typedef {Awaited<ReturnType<typeof installed>>} Installed */

/** Packs the package and installs it, without a network. `files` are the paths in the tarball, `own` the folder of the installed package. */
export function installed() {
  const folder = mkdtempSync(join(tmpdir(), 'tabtune-packed-'));
  const app = join(folder, 'app');
  mkdirSync(join(app, 'public'), { recursive: true });
  /** @param {string} command @param {string[]} args @param {string} cwd */
  const shell = (command, args, cwd = app) =>
    execFileSync(command, args, {
      cwd,
      env: environment,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  const [{ filename, files }] = JSON.parse(
    shell('npm', ['pack', '--json', '--pack-destination', folder], join(root, STAGED)),
  );
  const tarball = join(folder, filename);
  writeFileSync(join(app, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
  shell('npm', ['install', '--offline', '--no-audit', tarball]);
  return {
    app,
    tarball,
    files: files.map((/** @type {{ path: string }} */ { path }) => path).sort(),
    own: join(app, 'node_modules', 'tabtune'),
    shell,
    /** @param {string} name @param {string} text */
    write: (name, text) => writeFileSync(join(app, name), text),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
