// The package as a tarball, around the core that TABTUNE_CORE names: the released one as it is published, or the quick one with the same scripts,
// types and package.json.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { built } from '../../web/core-kind.mjs';
import { packageTypes } from '../../web/package-types.mjs';
import { STAGED, manifest } from '../../web/stage-package.mjs';
import { cacheDir, environment, root } from '../../web/toolchain.mjs';

/** Makes the folder of a package with the quick core. @param {string} folder */
function staged(folder) {
  const dist = join(folder, 'dist');
  mkdirSync(dist, { recursive: true });
  for (const file of readdirSync(join(root, built.package))) {
    if (!/\.(js|wasm)$/.test(file)) continue;
    cpSync(join(root, built.package, file), join(dist, file));
    if (!file.endsWith('.js')) continue;
    const text = readFileSync(join(dist, file), 'utf8');
    writeFileSync(join(dist, file), text.replace(/\n\/\/# sourceMappingURL=.*\n?$/, '\n'));
  }
  packageTypes(dist);
  cpSync(join(root, 'web', 'npm', 'README.md'), join(folder, 'README.md'));
  const own = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest(own)));
}

/** Packs the package. Its name has a part of its sum, so that npm installs another one. @returns {string} */
export function packed() {
  const place = join(cacheDir, 'bundlers', 'package');
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place, { recursive: true });
  if (!existsSync(join(root, built.package, 'index.js')))
    throw new Error(`${built.package} is missing: run npm run build, or set TABTUNE_CORE=quick`);
  const folder = built.kind === 'release' ? join(root, STAGED) : join(place, 'staged');
  if (built.kind === 'quick') staged(folder);
  const [{ filename }] = JSON.parse(
    execFileSync('npm', ['pack', '--json', '--pack-destination', place], {
      cwd: folder,
      env: environment,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  );
  const tarball = join(place, filename);
  const sum = createHash('sha256').update(readFileSync(tarball)).digest('hex').slice(0, 12);
  const named = tarball.replace(/\.tgz$/, `-${sum}.tgz`);
  renameSync(tarball, named);
  return named;
}
