// Functions that nothing calls become a trap before wasm-opt, and only those.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import binaryen from 'binaryen';
import { afterAll, describe, expect, it } from 'vitest';

import { environment } from '../toolchain.mjs';

const DIGEST = '::h0123456789abcdef';
const UNREACHED = [
  '<a::Op as pliron::parsable::Parsable>::parse',
  'a::<impl pliron::parsable::Parsable for b::Position>::parse',
  'pliron::utils::apfloat::float_parse',
  'pliron::op::canonical_syntax_parse_impl',
  '<a::Float as pliron::utils::apfloat::DynFloat>::build_from_str_r',
  'pliron::irfmt::parsers::quoted_string_parse',
  '<combine::parser::token::Token<Input> as combine::parser::Parser<Input>>::parse_stream',
  'a::<impl b::qtensor::QTensorOps<a::Backend> for a::Backend>::quantize',
  'burn_cubecl::kernel::quantization::quantize',
  'cubecl_std::quant::view::expand',
  '<cubek_quant::quantize::Kernel as cubecl_runtime::kernel::CubeKernel>::define',
  'burn_cubecl::ops::qtensor::new_quantized',
  'cubecl_std::tensor::contiguous::launch::into_contiguous_packed_ref',
  'cubek_matmul::tiled::storage::relayout_launch',
];
const OTHER = UNREACHED.length;

/** Returns a module of functions with these names, which are exported by their place and return it. */
function wasm(names: string[]): Buffer {
  binaryen.setDebugInfo(true);
  const exports = names.map((_, at) => `(export "${at}" (func ${at + 1}))`).join(' ');
  const functions = names
    .map((name, at) => `(func $"${name}${DIGEST}" (result i32) (i32.const ${at}))`)
    .join(' ');
  const module = binaryen.parseText(
    `(module (import "env" "call" (func $call)) ${exports} ${functions})`,
  );
  const bytes = Buffer.from(module.emitBinary());
  module.dispose();
  return bytes;
}

const folder = mkdtempSync(join(tmpdir(), 'tabtune-unreached-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs `trap-unreached` of web/bindgen. */
function withoutUnreached(module: Buffer): Buffer<ArrayBuffer> {
  const path = join(folder, 'module.wasm');
  writeFileSync(path, module);
  execFileSync('trap-unreached', [path], { env: environment, stdio: ['ignore', 'ignore', 'pipe'] });
  return readFileSync(path);
}

describe('functions that nothing calls', () => {
  it('are traps, and all others stay', () => {
    const small = withoutUnreached(
      wasm([...UNREACHED, '<a::Op as pliron::printable::Printable>::parse_all']),
    );
    const instance = new WebAssembly.Instance(new WebAssembly.Module(small), {
      env: { call: () => undefined },
    });
    const functions = instance.exports as Record<string, () => number>;
    for (const at of UNREACHED.keys()) expect(functions[at]).toThrow(WebAssembly.RuntimeError);
    expect(functions[OTHER]?.()).toBe(OTHER);
  });

  it.each(['pliron::parsable::parse_from_str', 'burn_tensor::tensor::api::quantize'])(
    'are not dropped where %s calls them',
    (caller) => {
      expect(() => withoutUnreached(wasm([...UNREACHED, caller]))).toThrow(
        'which calls what trap-unreached drops',
      );
    },
  );

  it.each(UNREACHED)('are not silently missed: %s', (missing) => {
    const names = UNREACHED.map((name) => (name === missing ? 'a::renamed' : name));
    expect(() => withoutUnreached(wasm(names))).toThrow('has no function');
  });
});
