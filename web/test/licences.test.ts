import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

import { listed, npmPackages, PACKAGE, PAGE, TESTING } from '../licences.mjs';
import { environment, line, root } from '../toolchain.mjs';

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
].concat(['MIT', 'MPL-2.0', 'Unicode-3.0', 'Unlicense', 'Zlib']);
/** Licences that are accepted for tools as well, which are not published. */
const TAKEN_OF_TOOLS = [...TAKEN, 'BlueOak-1.0.0', 'CC-BY-4.0', 'Python-2.0'];

/** Time limit where the registry is empty at first. */
const DOWNLOAD_MILLIS = 600_000;

/** True if every part of an SPDX expression leaves a choice that is accepted. Old packages write a slash for OR. */
function isTaken(licence: string, taken: string[]): boolean {
  const parts = licence.replaceAll(/[()]/g, '').split(/\bAND\b/);
  return parts.every((part) => part.split(/\bOR\b|\//).some((name) => taken.includes(name.trim())));
}

/** Returns the crates of a workspace that are compiled for this machine and for browsers, as `name|licence`. */
function cratesOf(manifest: string): string[] {
  const output = ([program, args]: [string, string[]]): string =>
    execFileSync(program, args, {
      cwd: root,
      env: environment,
      encoding: 'utf8',
      maxBuffer: 1 << 28,
    });
  const host = /^host: (.*)$/m.exec(output(line`rustc -vV`))?.[1] ?? '';
  const targets = ['--target', host, '--target', 'wasm32-unknown-unknown'];
  const tree = line`cargo tree --manifest-path ${manifest} --workspace --locked --prefix none --edges normal,build --format {p}|{l}| ${targets}`;
  return output(tree)
    .split('\n')
    .filter((row) => row !== '');
}

const apache = 'Apache License\n\n   Version 2.0';

describe('licences', () => {
  it('each_wording_is_there_once', () => {
    const text = listed([
      { name: 'a 1.0.0', licence: 'MIT', texts: ['Copyright A'], source: 'https://a.example' },
      { name: 'b 2.0.0', licence: 'MIT OR Apache-2.0', texts: [apache, 'Copyright B'] },
      {
        name: 'c 3.0.0',
        licence: 'Apache-2.0',
        texts: [`${apache.replace('   ', ' ').replaceAll('\n', '\r\n')}\r\n`],
      },
    ]);
    expect(text.split('\n').slice(0, 3)).toEqual([
      'a 1.0.0: MIT; text 1; https://a.example',
      'b 2.0.0: MIT OR Apache-2.0; text 2, 3',
      'c 3.0.0: Apache-2.0; text 2',
    ]);
    expect(text.match(/Version 2\.0/g)).toHaveLength(1);
    expect(text.match(/^Text \d+$/gm)).toEqual(['Text 1', 'Text 2', 'Text 3']);
  });
  it('a_package_without_a_text_names_its_authors', () => {
    expect(listed([{ name: 'd 1.0.0', licence: 'MIT', texts: [], authors: ['D', 'E'] }])).toBe(
      'd 1.0.0: MIT; no text in the package; authors: D, E\n',
    );
  });
  it('packages_are_those_that_the_sources_import', () => {
    const names = (entryPoints: Record<string, string>): string[] =>
      npmPackages(entryPoints).map(({ name }) => name.replace(/ .*/, ''));
    expect(names(PACKAGE)).toEqual(['fzstd', 'hyparquet', 'idb']);
    expect(names(PAGE)).toEqual(['fzstd', 'hyparquet', 'idb', 'lit-html', 'uplot']);
    expect(names(TESTING)).toEqual(['fake-indexeddb', 'fzstd', 'hyparquet', 'idb']);
    expect(npmPackages({ ...PAGE, ...TESTING }).filter(({ texts }) => texts.length === 0)).toEqual(
      [],
    );
  });
  it.each(['Cargo.toml', 'native-runner/cuda/Cargo.toml'])(
    'of_the_crates_of_%s_are_accepted',
    (manifest) => {
      const crates = cratesOf(manifest);
      expect(crates.length).toBeGreaterThan(100);
      expect(crates.filter((row) => !isTaken(row.split('|')[1] ?? '', TAKEN))).toEqual([]);
    },
    DOWNLOAD_MILLIS,
  );
  it('of_npm_packages_are_accepted', () => {
    const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { license?: string }>;
    };
    const tools = Object.entries(packages).filter(([path]) => path !== '');
    expect(tools.filter(([, { license = '' }]) => !isTaken(license, TAKEN_OF_TOOLS))).toEqual([]);
    expect(
      npmPackages({ ...PAGE, ...TESTING }).filter(({ licence }) => !isTaken(licence, TAKEN)),
    ).toEqual([]);
  });
});
