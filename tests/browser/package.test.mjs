// The npm package as it is packed: its files, what its package.json says, the licences of others, and its types in the projects of users.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { test } from '@playwright/test';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { root } from '../../web/toolchain.mjs';
import { installed } from './tarball.mjs';

/** Ways to find a module that the package is made for: it has no CommonJS, and the lookup of Node before 12 knows no `exports`. */
const LOOKUPS = ['node16-esm', 'bundler'];

/** @type {import('./tarball.mjs').Installed} */
let pack;
test.beforeAll(() => {
  pack = installed();
});
test.afterAll(() => pack?.remove());

/** @param {string} path */
const textOf = (path) => readFileSync(join(pack.own, path), 'utf8');
/** @param {string} path */
const repository = (path) => readFileSync(join(root, path), 'utf8');

test('package: its files are those of the list', () => {
  assert.deepEqual(
    pack.files,
    repository('web/npm/files.txt').trimEnd().split('\n'),
    'Is each of these files meant to be published? Then mend web/npm/files.txt.',
  );
});

test('package: its package.json is for users, and its scripts name no source maps', () => {
  const manifest = JSON.parse(textOf('package.json'));
  const own = JSON.parse(repository('package.json'));
  for (const field of ['scripts', 'devDependencies', 'dependencies', 'private', 'overrides'])
    assert.ok(!(field in manifest), field);
  for (const field of ['version', 'license', 'engines', 'keywords', 'repository', 'exports'])
    assert.deepEqual(manifest[field], own[field], field);
  assert.match(manifest.homepage, /^https:\/\//);
  assert.match(manifest.bugs.url, /^https:\/\//);
  assert.deepEqual(manifest.sideEffects, ['./dist/worker.js']);
  for (const entry of Object.values(manifest.exports))
    for (const path of typeof entry === 'string' ? [entry] : Object.values(entry))
      assert.ok(pack.files.includes(path.slice(2)), path);
  for (const path of pack.files.filter((path) => path.endsWith('.js')))
    assert.doesNotMatch(textOf(path), /sourceMappingURL/, path);
});

test('package: publint and are-the-types-wrong find nothing', async () => {
  const { messages, pkg } = await publint({ pkgDir: pack.own, strict: true });
  assert.deepEqual(
    messages.map((message) => formatMessage(message, pkg)),
    [],
  );
  const checked = await checkPackage(
    createPackageFromTarballData(new Uint8Array(readFileSync(pack.tarball))),
    // An asset, which bundlers copy, has no types.
    { excludeEntrypoints: ['./wasm'] },
  );
  assert.ok(checked.types);
  const found = checked.problems.filter(
    (problem) => !('resolutionKind' in problem) || LOOKUPS.includes(problem.resolutionKind),
  );
  assert.deepEqual(found, []);
});

test('package: its calls about files run in Node', () => {
  pack.write(
    'look.mjs',
    `import { readFileSync } from 'node:fs';
import { inspectData, inspectFiles } from 'tabtune/files';
const [data] = await inspectData({ text: 'Arms and the man.' });
const { kind } = await inspectFiles(readFileSync(process.argv[2]));
console.log(data.form, kind);`,
  );
  const model = join(root, 'tests/golden/lora/tiny.gguf');
  assert.equal(pack.shell(process.execPath, ['look.mjs', model]), 'text model\n');
});

test('package: the licences are those of every package that it contains', () => {
  const notices = textOf('NOTICES.txt');
  const named = [...notices.matchAll(/^(\S+) (\d\S*): \S.*; (?:text \d|no text)/gm)].map(
    ([, name, version]) => `${name} ${version}`,
  );
  const crates = [...repository('Cargo.lock').matchAll(/^name = "(.*)"\nversion = "(.*)"$/gm)];
  const { packages } = JSON.parse(repository('package-lock.json'));
  const locked = new Set(crates.map(([, name, version]) => `${name} ${version}`));
  for (const [path, { version }] of Object.entries(packages))
    locked.add(`${path.replace('node_modules/', '')} ${version}`);
  assert.deepEqual(
    named.filter((each) => !locked.has(each)),
    [],
  );
  // Panics name the file where they began, and with it the package: these are inside whatever Cargo says.
  const module = readFileSync(join(pack.own, 'dist', 'tabtune_bg.wasm'), 'latin1');
  const inside = new Set(
    [...module.matchAll(/\/([\w-]+)-(\d+\.\d+\.\d+[\w.+-]*)\/src\//g)].map(
      ([, name, version]) => `${name} ${version}`,
    ),
  );
  assert.ok(inside.size > 50, `${inside.size} packages name their files`);
  for (const name of ['fzstd', 'hyparquet', 'idb'])
    inside.add(`${name} ${packages[`node_modules/${name}`].version}`);
  const isNamed = (/** @type {string} */ each) =>
    // No lock file has the packages in Rust's standard library.
    named.includes(each) || new RegExp(`^${each.split(' ')[0]}, `, 'm').test(notices);
  assert.deepEqual(
    [...inside].filter((each) => !isNamed(each)),
    [],
  );
  assert.match(notices, /^ +Apache License$/m);
});

/** The package's documents. */
const documents = () => pack.files.filter((path) => path.endsWith('.md'));

/** Names that parts of programs take as given. */
const GIVEN = `import { openModel, Trainer } from 'tabtune';
export async function part(trainer: Trainer, run: string, base: File[], data: File, rows: File) {
  {`;

/** The programs of a document of the package, each as a module. @param {string} path */
const programsIn = (path) =>
  [...textOf(path).matchAll(/^```(js|ts)\n(.*?)^```$/gms)].map(([, , program = '']) =>
    program.includes('import ') ? `${program}\nexport {};\n` : `${GIVEN}\n${program}  }\n}\n`,
  );

for (const compiler of ['old-typescript', 'typescript']) {
  for (const [module, moduleResolution] of [
    ['esnext', 'bundler'],
    ['node16', 'node16'],
  ]) {
    test(`package: README's programs compile with ${compiler}, ${moduleResolution}`, () => {
      const programs = documents().flatMap(programsIn);
      assert.ok(programs.length > 7, `${programs.length} programs`);
      const entries = ['', '/files', '/worker', '/schema', '/package.json'];
      programs.push(`${entries.map((entry) => `import('tabtune${entry}');`).join('\n')}\n`);
      const names = programs.map((program, index) => {
        pack.write(`program-${index}.ts`, program);
        return `program-${index}.ts`;
      });
      const compilerOptions = {
        ...{ module, moduleResolution, target: 'es2022', lib: ['es2022', 'dom'], types: [] },
        ...{ strict: true, exactOptionalPropertyTypes: true, resolveJsonModule: true },
        ...{ skipLibCheck: false, noEmit: true },
      };
      pack.write('tsconfig.json', JSON.stringify({ compilerOptions, files: names }));
      try {
        const tsc = join(root, 'node_modules', compiler, 'bin', 'tsc');
        pack.shell(process.execPath, [tsc, '--project', '.']);
      } catch (/** @type {any} */ thrown) {
        assert.fail(thrown.stdout);
      }
    });
  }
}

test('package: the demo compiles against its types, with the libraries of ES2022 and the DOM', () => {
  const types = (/** @type {string} */ entry) => [join(pack.own, 'dist', `${entry}.d.ts`)];
  const compilerOptions = {
    ...{ lib: ['es2022', 'dom'], types: ['vite/client'], skipLibCheck: false, checkJs: false },
    ...{ incremental: false, tsBuildInfoFile: null, typeRoots: [join(root, 'node_modules')] },
    paths: {
      tabtune: types('index'),
      'tabtune/files': types('files'),
      'tabtune/schema': types('schema'),
    },
  };
  const include = [join(root, 'web/demo/**/*.ts')];
  const config = { extends: join(root, 'tsconfig.json'), compilerOptions, include };
  pack.write('tsconfig.demo.json', JSON.stringify(config));
  try {
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    pack.shell(process.execPath, [tsc, '--project', 'tsconfig.demo.json']);
  } catch (/** @type {any} */ thrown) {
    assert.fail(thrown.stdout);
  }
});

test('package: links in its documents point to files and headings of the package', () => {
  const anchors = (/** @type {string} */ text) =>
    [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replace(/[^\w -]/g, '')
        .replaceAll(' ', '-'),
    );
  assert.ok(documents().includes('README.md') && documents().length > 2, `${documents()}`);
  const dead = documents().flatMap((path) => {
    const links = [...textOf(path).matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, link = '']) => link)
      .filter((link) => !/^[a-z]+:/.test(link));
    return links
      .filter((link) => {
        const [target = '', anchor] = link.split('#');
        const file = target === '' ? path : normalize(join(dirname(path), target));
        if (!pack.files.includes(file)) return true;
        return anchor !== undefined && !anchors(textOf(file)).includes(anchor);
      })
      .map((link) => `${path}: ${link}`);
  });
  assert.deepEqual(dead, []);
});
