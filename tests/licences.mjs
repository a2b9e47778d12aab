// The licences of what is compiled and of the tools from npm, by what each package says of itself, and the text that says them in package and
// page: node tests/licences.mjs [Cargo.toml ...]
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PAGE, crates, notices, npmPackages } from '../web/licences.mjs';
import { environment, root } from '../web/toolchain.mjs';

/** Accepted licences: those that only require their text, and MPL-2.0, which applies only to a package's own files. */
const TAKEN = [
  '0BSD',
  'Apache-2.0',
  'Apache-2.0 WITH LLVM-exception',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'BSL-1.0',
  'CC0-1.0',
  'ISC',
  'MIT',
  'MPL-2.0',
  'Unicode-3.0',
  'Unlicense',
  'Zlib',
];
/** Licences that are accepted for tools as well, which are not published. */
const TAKEN_OF_TOOLS = [...TAKEN, 'BlueOak-1.0.0', 'CC-BY-4.0'];
/** The targets of the machine and of the browser. */
const TARGETS = [
  /^host: (.*)$/m.exec(execFileSync('rustc', ['-vV'], { encoding: 'utf8', env: environment }))?.[1] ?? '',
  'wasm32-unknown-unknown',
];
const MANIFESTS = ['Cargo.toml', 'native-runner/cuda/Cargo.toml'];

/** Returns whether every part of an SPDX expression leaves a choice that is accepted. Old packages write a slash for OR. */
function isTaken(expression = '', taken = TAKEN) {
  const parts = expression.replaceAll('/', ' OR ').split(/\bAND\b/);
  return parts.every((part) =>
    part
      .replaceAll(/[()]/g, '')
      .split(/\bOR\b/)
      .some((name) => taken.includes(name.trim())),
  );
}

/**
 * Returns the packages of a workspace that are compiled, with their licences.
 * @returns {Map<string, string>}
 */
function packagesOf(manifest) {
  const args = [
    'tree',
    '--manifest-path',
    manifest,
    '--workspace',
    '--locked',
    '--prefix',
    'none',
    '--edges',
    'normal,build',
    '--format',
    '{p}|{l}|',
  ];
  const text = execFileSync('cargo', [...args, ...TARGETS.flatMap((target) => ['--target', target])], {
    encoding: 'utf8',
    cwd: root,
    env: environment,
    maxBuffer: 1 << 28,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return new Map(
    text
      .split('\n')
      .filter((line) => line.includes('|'))
      .map((line) => /** @type {[string, string]} */ (line.split('|').slice(0, 2))),
  );
}

/** Reports the packages, pairs of name and licence, whose licence is not taken. */
function judge(where, packages, taken = TAKEN) {
  const wrong = packages.filter(([, licence]) => !isTaken(licence, taken));
  for (const [name, licence] of wrong)
    console.error(`${where}: ${name}: expected a licence of ${taken.join(', ')}, found ${licence || 'none'}`);
  console.log(`${where}: licences of ${packages.length} packages, ${wrong.length} not taken`);
  if (wrong.length > 0) process.exitCode = 1;
}

const manifests = process.argv.slice(2);
for (const manifest of manifests.length > 0 ? manifests : MANIFESTS) judge(manifest, [...packagesOf(manifest)]);
if (manifests.length === 0) {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  judge(
    'package-lock.json',
    Object.entries(packages)
      .filter(([path]) => path !== '')
      .map(([path, { license }]) => [path, license]),
    TAKEN_OF_TOOLS,
  );
  const ours = npmPackages(PAGE);
  judge(
    'npm packages in package and page',
    ours.map(({ name, licence }) => [name, licence]),
  );
  const text = notices(PAGE);
  const absent = [...ours, ...crates()].filter(({ name }) => !text.includes(`\n${name}: `));
  const untold = ours.filter(({ texts }) => texts.length === 0);
  for (const { name } of absent) console.error(`licences.txt: ${name} is missing`);
  for (const { name } of untold) console.error(`licences.txt: ${name}: no text of its licence in node_modules; run npm ci`);
  if (absent.length + untold.length > 0) process.exitCode = 1;
}
