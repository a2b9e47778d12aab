// The licences of what the npm package and the demo page contain of others, as one text: of the crates in the core, by Cargo.lock, and of the
// npm packages that the sources import, by package-lock.json.
//   node web/licences.mjs          prints that of the demo page
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { environment, filesOf, root } from './toolchain.mjs';

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
/** Parts that no lock file lists. */
const BESIDES = [
  { name: 'Rust, its standard library', licence: 'MIT OR Apache-2.0', source: 'https://github.com/rust-lang/rust', texts: [] },
  {
    name: 'gguf-py, code books of the IQ types',
    licence: 'MIT',
    source: 'https://github.com/ggml-org/llama.cpp',
    files: ['crate/src/formats/blocks/LICENSE.gguf'],
  },
];

const HEAD = `tabtune contains software of others. Each line below names a package, its licence, and the number of the text of that licence.
Where a package comes without a text, the texts of other packages under the same licence say its terms.

`;

const json = (path) => JSON.parse(readFileSync(path, 'utf8'));

/** @param {string[]} args */
function cargo(args) {
  /** @type {import('node:child_process').ExecFileSyncOptionsWithStringEncoding} */
  const options = { cwd: root, env: environment, encoding: 'utf8', maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'inherit'] };
  return execFileSync('cargo', [...args, '--manifest-path', join('web', 'core', 'Cargo.toml'), '--locked'], options);
}

/** The texts of the files with a licence in a folder. */
function textsIn(folder) {
  const files = readdirSync(folder)
    .filter((name) => LICENCE_FILE.test(name))
    .map((name) => join(folder, name));
  return files.filter((path) => statSync(path).isFile()).map((path) => readFileSync(path, 'utf8'));
}

/** The crates that are compiled into the core, without our own. @returns {Licensed[]} */
export function crates() {
  const tree = cargo(['tree', '--edges', 'normal', '--target', TARGET, '--prefix', 'none', '--format', '{p}']);
  const compiled = new Set(tree.split('\n').map((line) => line.split(' ').slice(0, 2).join(' ')));
  const { packages } = JSON.parse(cargo(['metadata', '--format-version', '1', '--filter-platform', TARGET]));
  return packages
    .filter(({ name, version, source }) => source !== null && compiled.has(`${name} v${version}`))
    .map(({ name, version, license, repository, authors, manifest_path: manifest }) => ({
      name: `${name} ${version}`,
      licence: license,
      source: repository ?? undefined,
      authors: authors.map((author) => author.replace(/ *<.*>$/, '')),
      texts: textsIn(dirname(manifest)),
    }));
}

/** The npm packages that TypeScript below `folders` imports, and those that these depend on. @param {string[]} folders @returns {Licensed[]} */
export function npmPackages(folders) {
  const { packages } = json(join(root, 'package-lock.json'));
  const entry = (name) => packages[`node_modules/${name}`];
  const sources = folders.flatMap((folder) => filesOf(join(root, folder))).filter((path) => path.endsWith('.ts'));
  const imported = sources.flatMap((path) =>
    [...readFileSync(path, 'utf8').matchAll(/(?:\bfrom |\bimport\(|\bimport )'((?:@[\w.-]+\/)?[\w.-]+)/g)].map(([, name]) => name),
  );
  const names = new Set(imported.filter(entry));
  for (const name of names) Object.keys(entry(name).dependencies ?? {}).forEach((each) => names.add(each));
  return [...names].sort().map((name) => {
    const folder = join(root, 'node_modules', name);
    const { repository } = existsSync(folder) ? json(join(folder, 'package.json')) : {};
    const texts = existsSync(folder) ? textsIn(folder) : [];
    return { name: `${name} ${entry(name).version}`, licence: entry(name).license, source: repository?.url ?? repository, texts };
  });
}

/** One text of packages and their licences, in which each wording is there once. @param {Licensed[]} packages */
export function listed(packages) {
  const numbers = new Map();
  const wordings = [];
  const numberOf = (text) => {
    const key = text.replaceAll(/\s+/g, ' ').trim();
    if (!numbers.has(key)) numbers.set(key, wordings.push(text.replaceAll('\r\n', '\n').trim()));
    return numbers.get(key);
  };
  const lines = packages.map(({ name, licence, source, authors = [], texts }) => {
    const found = [...new Set(texts.map(numberOf))];
    const where =
      found.length > 0
        ? `text ${found.join(', ')}`
        : `no text in the package${authors.length > 0 ? `; authors: ${authors.join(', ')}` : ''}`;
    return `${name}: ${licence}; ${where}${source ? `; ${source}` : ''}`;
  });
  const rule = '-'.repeat(80);
  return `${lines.join('\n')}\n${wordings.map((text, index) => `\n${rule}\nText ${index + 1}\n${rule}\n\n${text}\n`).join('')}`;
}

/** The licences of what is made of the sources in `folders` and of the core. @param {string[]} folders */
export function notices(folders) {
  const besides = BESIDES.map(({ files = [], ...each }) => ({
    texts: files.map((path) => readFileSync(join(root, path), 'utf8')),
    ...each,
  }));
  return HEAD + listed([...npmPackages(folders), ...besides, ...crates()]);
}

if (process.argv[1]?.endsWith(join('web', 'licences.mjs'))) process.stdout.write(notices(PAGE));
