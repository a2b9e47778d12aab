// Functions that nothing calls become a trap before wasm-opt, and only those.
import binaryen from 'binaryen';
import { describe, expect, it } from 'vitest';

import { withoutUnreached } from '../unreached.mjs';

const DIGEST = '::h0123456789abcdef';
const PARSERS = `
  (func $"<a::Op as pliron::parsable::Parsable>::parse${DIGEST}" (result i32) (i32.const 1))
  (func $"pliron::op::canonical_syntax_parse_impl${DIGEST}" (result i32) (i32.const 2))`;
const MODULE = `(import "env" "call" (func $call))
  (export "parse" (func 1)) (export "impl" (func 2)) (export "other" (func 3))`;

function wasm(functions: string): Buffer {
  binaryen.setDebugInfo(true);
  const module = binaryen.parseText(`(module ${MODULE} ${functions})`);
  const bytes = Buffer.from(module.emitBinary());
  module.dispose();
  return bytes;
}

const other = (name: string): string => `(func $"${name}${DIGEST}" (result i32) (i32.const 3))`;

describe('functions that nothing calls', () => {
  it('are traps, and all others stay', () => {
    const small = withoutUnreached(wasm(PARSERS + other('<a::Op as pliron::printable::Printable>::parse_all')));
    const instance = new WebAssembly.Instance(new WebAssembly.Module(small), { env: { call: () => undefined } });
    const { parse, impl, other: kept } = instance.exports as Record<string, () => number>;
    expect(parse).toThrow(WebAssembly.RuntimeError);
    expect(impl).toThrow(WebAssembly.RuntimeError);
    expect(kept?.()).toBe(3);
  });

  it('are not dropped where something calls them, nor silently missed', () => {
    expect(() => withoutUnreached(wasm(PARSERS + other('pliron::parsable::parse_from_str')))).toThrow(
      'which calls what unreached.mjs drops',
    );
    const renamed = PARSERS.replace('Parsable>::parse', 'Parsable>::read') + other('a::b');
    expect(() => withoutUnreached(wasm(renamed))).toThrow('has no function');
  });
});
