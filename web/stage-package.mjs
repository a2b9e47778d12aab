// The folder from which the npm package is packed and published, dist/package: what build-package.mjs has built, the documents, and a package.json
// for users.
//   node web/stage-package.mjs          after npm run build; npm pack ./dist/package then packs it
import {
  constants,
  cpSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './toolchain.mjs';

export const STAGED = 'dist/package';

/** Files of the package and where they come from. Documents keep their places, so that their links lead somewhere. */
const DOCUMENTS = {
  'README.md': 'web/npm/README.md',
  'CHANGELOG.md': 'CHANGELOG.md',
  'NOTICES.txt': 'dist/licences.txt',
  LICENSE: 'LICENSE',
  'crate/SETTINGS.md': 'crate/SETTINGS.md',
  'web/ERRORS.md': 'web/ERRORS.md',
  'web/README.md': 'web/README.md',
  'web/reference': 'web/reference',
  recipes: 'recipes',
};
/** Parts of dist that are not packed as they are. */
const NOT_PACKED = ['package', 'licences.txt'];
/** Fields of package.json that users need. */
const FIELDS = [
  'name',
  'version',
  'description',
  'keywords',
  'license',
  'repository',
  'type',
  'engines',
  'exports',
];

/** Returns the package.json for users, from that of the repository. @param {Record<string, any>} own */
export function manifest(own) {
  const home = own.repository.url.replace(/^git\+|\.git$/g, '');
  return {
    ...Object.fromEntries(FIELDS.map((field) => [field, own[field]])),
    homepage: `${home}#readme`,
    bugs: { url: `${home}/issues` },
    sideEffects: [own.exports['./worker'].default],
  };
}

/** Writes the folder. */
export function stage(folder = join(root, STAGED)) {
  rmSync(folder, { recursive: true, force: true });
  const dist = readdirSync(join(root, 'dist')).filter((name) => !NOT_PACKED.includes(name));
  const files = {
    ...Object.fromEntries(dist.map((name) => [`dist/${name}`, `dist/${name}`])),
    ...DOCUMENTS,
  };
  for (const [to, from] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, to)), { recursive: true });
    cpSync(join(root, from), join(folder, to), {
      recursive: true,
      mode: constants.COPYFILE_FICLONE,
    });
  }
  const own = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest(own), null, 2)}\n`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) stage();
