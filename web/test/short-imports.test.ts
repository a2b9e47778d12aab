import { describe, expect, it } from 'vitest';

import { shortImports } from '../short-imports.mjs';

const HASH = '0123456789abcdef';

/** Returns a text as it is in a module, which has to be short. */
const named = (text: string): number[] => [text.length, ...new TextEncoder().encode(text)];

/** Returns a module that imports functions of these names, of the kind that says how, and exports nothing. */
function moduleWith(names: string[], kind = [0, 0]): Uint8Array<ArrayBuffer> {
  const imports = [
    names.length,
    ...names.flatMap((name) => [...named('m'), ...named(name), ...kind]),
  ];
  const head = [0, 97, 115, 109, 1, 0, 0, 0];
  return Uint8Array.from([...head, 1, 4, 1, 96, 0, 0, 2, imports.length, ...imports]);
}
const importsOf = (wasm: Uint8Array<ArrayBuffer>): string[] =>
  WebAssembly.Module.imports(new WebAssembly.Module(wasm)).map(({ name }) => name);

describe('names of imports', () => {
  it('lose_their_digits_in_module_and_glue_and_remain_different', () => {
    const names = ['call_2', `__wbg_call_${HASH}`, '__wbg_call_2', `__wbg_call_f${HASH.slice(1)}`];
    const glue = names.map((name) => `${name}: function () {},`).join('\n');
    const short = shortImports(moduleWith(names), glue);
    const expected = ['call_2', '__wbg_call', '__wbg_call_2', '__wbg_call_3'];
    expect(importsOf(Uint8Array.from(short.wasm))).toEqual(expected);
    expect(short.glue).toBe(expected.map((name) => `${name}: function () {},`).join('\n'));
    expect(shortImports(short.wasm, short.glue)).toEqual(short);
  });
  it('are_not_guessed_where_glue_and_module_differ', () => {
    expect(() => shortImports(moduleWith(['a']), `__wbg_call_${HASH}`)).toThrow(/does not import/);
    expect(() => shortImports(moduleWith(['a'], [3, 127, 0]), '')).toThrow(/a is no function/);
  });
});
