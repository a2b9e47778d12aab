// The licences of what the npm package and the demo page contain of others, as one text: of the crates in the core, by Cargo.lock, and of the
// npm packages that the sources import, by package-lock.json.
//   node web/licences.mjs          prints that of the demo page
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { environment, filesOf, line, root } from './toolchain.mjs';

/**
 * A package of others with its licence, as an SPDX expression, and its texts.
 * @typedef {{ name: string, licence: string, source?: string, authors?: string[], texts: string[] }} Licensed
 */

/** Where the imports of the npm package and of the demo page are. */
export const PACKAGE = ['web/src'];
export const PAGE = ['web/src', 'web/demo'];

const TARGET = 'wasm32-unknown-unknown';
/** Names of files with a licence or a notice. */
const LICENCE_FILE = /^(un)?licen[cs]e|^copy(ing|right)|^notice/i;
const HEAD = `tabtune contains software of others. Each line below names a package, its licence, and the number of the text of that licence.
Where a package comes without a text, the texts of other packages under the same licence say its terms.

`;

/** @param {string} path */
const textOf = (path) => readFileSync(join(root, path), 'utf8');

/** Parts that no lock file lists. @returns {Licensed[]} */
const besides = () => {
  const books = {
    name: 'gguf-py, code books of the IQ types',
    licence: 'MIT',
    source: 'https://github.com/ggml-org/llama.cpp',
  };
  return [
    {
      name: 'Rust, its standard library',
      licence: 'MIT OR Apache-2.0',
      source: 'https://github.com/rust-lang/rust',
      texts: [],
    },
    { ...books, texts: [textOf('crate/src/formats/blocks/LICENSE.gguf')] },
  ];
};

/** Returns the output of a command. @param {ReturnType<typeof line>} command */
const outputOf = ([program, args]) =>
  execFileSync(program, args, {
    cwd: root,
    env: environment,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    stdio: ['ignore', 'pipe', 'inherit'],
  });

/** The texts of the files with a licence in a folder. @param {string} folder */
const textsIn = (folder) =>
  (existsSync(folder) ? readdirSync(folder) : [])
    .filter((name) => LICENCE_FILE.test(name) && statSync(join(folder, name)).isFile())
    .map((name) => readFileSync(join(folder, name), 'utf8'));

/** The crates that are compiled into the core, without our own. @returns {Licensed[]} */
function crates() {
  const manifest = 'web/core/Cargo.toml';
  const tree = outputOf(
    line`cargo tree --manifest-path ${manifest} --locked --prefix none --format {p} --edges normal --target ${TARGET}`,
  );
  const compiled = new Set(tree.split('\n').map((row) => row.split(' ').slice(0, 2).join(' ')));
  const metadata = outputOf(
    line`cargo metadata --manifest-path ${manifest} --locked --format-version 1 --filter-platform ${TARGET}`,
  );
  /** @type {(Record<'name' | 'version' | 'license' | 'repository' | 'source' | 'manifest_path', string> & { authors: string[] })[]} */
  const packages = JSON.parse(metadata).packages;
  return packages
    .filter(({ name, version, source }) => source !== null && compiled.has(`${name} v${version}`))
    .map(({ name, version, license, repository, authors, manifest_path: file }) => ({
      name: `${name} ${version}`,
      licence: license,
      source: repository ?? undefined,
      authors: authors.map((author) => author.replace(/ *<.*>$/, '')),
      texts: textsIn(dirname(file)),
    }));
}

/** The packages of package-lock.json by paths. @returns {Map<string, { version: string, license: string, dependencies?: Record<string, string> }>} */
const lockedPackages = () =>
  new Map(Object.entries(JSON.parse(textOf('package-lock.json')).packages));

/** The npm packages that TypeScript below `folders` imports, and those that these depend on. @param {string[]} folders @returns {Licensed[]} */
export function npmPackages(folders) {
  const packages = lockedPackages();
  const sources = folders
    .flatMap((folder) => filesOf(join(root, folder)))
    .filter((path) => path.endsWith('.ts'));
  const imports = sources.flatMap((path) => [
    ...readFileSync(path, 'utf8').matchAll(
      /(?:\bfrom |\bimport\(|\bimport )'((?:@[\w.-]+\/)?[\w.-]+)/g,
    ),
  ]);
  const folderOf = (/** @type {string | undefined} */ name) => `node_modules/${name}`;
  const found = new Set(
    imports.map(([, name]) => folderOf(name)).filter((folder) => packages.has(folder)),
  );
  for (const folder of found)
    Object.keys(packages.get(folder)?.dependencies ?? {}).forEach((each) =>
      found.add(folderOf(each)),
    );
  return [...found].sort().map((folder) => {
    const { version = '', license = '' } = packages.get(folder) ?? {};
    const { repository } = existsSync(join(root, folder))
      ? JSON.parse(textOf(join(folder, 'package.json')))
      : {};
    const name = `${folder.slice(folderOf('').length)} ${version}`;
    return {
      name,
      licence: license,
      source: repository?.url ?? repository,
      texts: textsIn(join(root, folder)),
    };
  });
}

/** One text of packages and their licences, in which each wording is there once. @param {Licensed[]} packages */
export function listed(packages) {
  /** Texts by their words, each as it was found first. @type {Map<string, string>} */
  const wordings = new Map();
  const numberOf = (/** @type {string} */ text) => {
    const words = text.replaceAll(/\s+/g, ' ').trim();
    if (!wordings.has(words)) wordings.set(words, text.replaceAll('\r\n', '\n').trim());
    return [...wordings.keys()].indexOf(words) + 1;
  };
  const lines = packages.map(({ name, licence, source, authors = [], texts }) => {
    const by = authors.length > 0 ? `; authors: ${authors.join(', ')}` : '';
    const where =
      texts.length > 0
        ? `text ${[...new Set(texts.map(numberOf))].join(', ')}`
        : `no text in the package${by}`;
    return `${name}: ${licence}; ${where}${source ? `; ${source}` : ''}`;
  });
  const rule = '-'.repeat(80);
  const texts = [...wordings.values()].map(
    (text, index) => `\n${rule}\nText ${index + 1}\n${rule}\n\n${text}\n`,
  );
  return `${lines.join('\n')}\n${texts.join('')}`;
}

/** The licences of what is made of the sources in `folders` and of the core. @param {string[]} folders */
export const notices = (folders) =>
  HEAD + listed([...npmPackages(folders), ...besides(), ...crates()]);

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  process.stdout.write(notices(PAGE));
