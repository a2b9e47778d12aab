// The licences of what the npm package and the demo page contain of others, as one text: of the crates that cargo
// compiles into the core, and of the npm packages that esbuild takes into the scripts.
//   node web/licences.mjs          prints that of the demo page
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildSync } from 'esbuild';
import { environment, line, root } from './toolchain.mjs';

/**
 * A package of others with its licence, as an SPDX expression, and its texts.
 * @typedef {{ name: string, licence: string, source?: string, authors?: string[], texts: string[] }} Licensed
 */

/** Where esbuild begins, by the names of what it makes: of the npm package, and of the demo page. */
export const PACKAGE = {
  index: 'web/src/index.ts',
  files: 'web/src/files.ts',
  schema: 'web/src/schema.ts',
  worker: 'web/src/worker/worker.ts',
  parquet: 'web/src/worker/parquet.ts',
};
/** The worker of Node, and the entry that starts it. */
export const NODE = {
  'files.node': 'web/src/files.node.ts',
  'node-thread': 'web/src/node/thread.ts',
};
/** The entry for tests of apps, which has the worker in it with a fake core. */
export const TESTING = { testing: 'web/src/testing.ts' };
export const PAGE = { ...PACKAGE, demo: 'web/demo/main.ts' };

const TARGET = 'wasm32-unknown-unknown';
/** Names of files with a licence or a notice. */
const LICENCE_FILE = /^(un)?licen[cs]e|^copy(ing|right)|^notice/i;
const HEAD = `tabtune contains software of others. Each line below names a package, its licence, and the number of the text of that licence.
Where a package comes without a text, the texts of other packages under the same licence say its terms.

`;

/** @param {string} path */
const textOf = (path) => readFileSync(join(root, path), 'utf8');

/** Parts that are no package. @type {Licensed[]} */
const OTHERS = [
  {
    name: 'Rust, its standard library',
    licence: 'MIT OR Apache-2.0',
    source: 'https://github.com/rust-lang/rust',
    texts: [],
  },
  {
    name: 'dlmalloc, the allocator in the standard library of Rust',
    licence: 'MIT OR Apache-2.0',
    source: 'https://github.com/alexcrichton/dlmalloc-rs',
    texts: [],
  },
  {
    name: 'gguf-py, code books of the IQ types',
    licence: 'MIT',
    source: 'https://github.com/ggml-org/llama.cpp',
    texts: [textOf('crate/src/formats/blocks/LICENSE.gguf')],
  },
];

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
  readdirSync(folder)
    .filter((name) => LICENCE_FILE.test(name) && statSync(join(folder, name)).isFile())
    .map((name) => readFileSync(join(folder, name), 'utf8'));

/** The crates that are compiled into the core, without our own. @returns {Licensed[]} */
function crates() {
  const core = ['--manifest-path', 'web/core/Cargo.toml', '--locked'];
  const tree = line`cargo tree ${core} --prefix none --format {p} --edges normal --target ${TARGET}`;
  const rows = outputOf(tree).split('\n');
  const compiled = new Set(rows.map((row) => row.split(' ').slice(0, 2).join(' ')));
  const metadata = line`cargo metadata ${core} --format-version 1 --filter-platform ${TARGET}`;
  /** @type {(Record<'name' | 'version' | 'license' | 'repository' | 'source' | 'manifest_path', string> & { authors: string[] })[]} */
  const packages = JSON.parse(outputOf(metadata)).packages;
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

/** The npm packages in what esbuild makes from these. @param {Record<string, string>} entryPoints @returns {Licensed[]} */
export function npmPackages(entryPoints) {
  const { metafile } = buildSync({
    entryPoints,
    external: ['tabtune-wasm', 'tabtune/*', 'node:*'],
    absWorkingDir: root,
    outdir: 'dist',
    bundle: true,
    format: 'esm',
    write: false,
    metafile: true,
    logLevel: 'error',
  });
  const folders = Object.keys(metafile.inputs).flatMap(
    (path) => /node_modules\/(@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? [],
  );
  return [...new Set(folders)].sort().map((folder) => {
    const { name, version, license, repository } = JSON.parse(textOf(`${folder}/package.json`));
    return {
      name: `${name} ${version}`,
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

/** The licences of what esbuild makes from these, and of the core. @param {Record<string, string>} entryPoints */
export const notices = (entryPoints) =>
  HEAD + listed([...npmPackages(entryPoints), ...OTHERS, ...crates()]);

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  process.stdout.write(notices(PAGE));
