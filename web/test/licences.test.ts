import { describe, expect, it } from 'vitest';

import { listed, npmPackages, PACKAGE, PAGE } from '../licences.mjs';

const apache = 'Apache License\n\n   Version 2.0';

describe('licences', () => {
  it('each_wording_is_there_once', () => {
    const text = listed([
      { name: 'a 1.0.0', licence: 'MIT', texts: ['Copyright A'], source: 'https://a.example' },
      { name: 'b 2.0.0', licence: 'MIT OR Apache-2.0', texts: [apache, 'Copyright B'] },
      { name: 'c 3.0.0', licence: 'Apache-2.0', texts: [`${apache.replace('   ', ' ').replaceAll('\n', '\r\n')}\r\n`] },
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
    const names = (folders: string[]): string[] => npmPackages(folders).map(({ name }) => name.replace(/ .*/, ''));
    expect(names(PACKAGE)).toEqual(['fzstd', 'hyparquet', 'idb']);
    expect(names(PAGE)).toEqual(['fzstd', 'hyparquet', 'idb', 'uplot']);
    expect(npmPackages(PAGE).filter(({ texts }) => texts.length === 0)).toEqual([]);
  });
});
