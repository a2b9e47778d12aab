// Functions that the linker keeps because tables name them, although nothing here calls them: their bodies become a trap, and wasm-opt then drops
// everything that only they reach.
const UNREACHED = [
  // The compiler of kernels can read its intermediate language as text, which it never receives.
  / as pliron::parsable::Parsable>::parse$/,
  /<impl pliron::parsable::Parsable for .*>::parse$/,
  /^pliron::utils::apfloat::float_parse$|::APFloatType>::parse_value$/,
  /^pliron::op::canonical_syntax_parse_impl$/,
  // Burn has quantized tensors, of which none is made here: packed weights are read by kernels of `shaders`.
  /QTensorOps/,
  /^burn_cubecl::kernel::quantization::/,
  /^cubecl_std::quant::/,
  /^<?cubek_quant::/,
  /^burn_cubecl::ops::qtensor::/,
];
/** Functions that would call one of them. */
const CALLER = /^pliron::parsable::parse_from_str$|::clone_into_context$|^burn_tensor::.*quantize/;
const CODE_SECTION = 10;
const FUNCTION_NAMES = 1;
/** A body without locals: its length, `unreachable`, `end`. */
const TRAP = Uint8Array.of(3, 0, 0x00, 0x0b);

class Reader {
  constructor(bytes, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }

  /** Reads an unsigned LEB128. */
  number() {
    for (let value = 0, scale = 1; ; scale *= 128) {
      const byte = this.bytes[this.at++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  }

  /** Reads the next bytes, after their length. */
  piece() {
    const length = this.number();
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }
}

function leb128(value) {
  const bytes = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) + 128);
  return Uint8Array.of(...bytes, value);
}

/** Returns the numbers of the unreached functions, by the names that the linker wrote, without the digest at their end. */
function unreached(module) {
  const names = new Reader(new Uint8Array(WebAssembly.Module.customSections(module, 'name')[0]));
  const found = new Map(UNREACHED.map((pattern) => [pattern, new Set()]));
  while (names.at < names.bytes.length) {
    const kind = names.bytes[names.at++];
    const list = new Reader(names.piece());
    for (let left = kind === FUNCTION_NAMES ? list.number() : 0; left > 0; left--) {
      const index = list.number();
      const name = new TextDecoder().decode(list.piece()).replace(/::h[0-9a-f]{16}$/, '');
      if (CALLER.test(name)) throw new Error(`the browser core has ${name}, which calls what unreached.mjs drops`);
      for (const [pattern, indices] of found) if (pattern.test(name)) indices.add(index);
    }
  }
  for (const [pattern, indices] of found) if (indices.size === 0) throw new Error(`the browser core has no function ${pattern}`);
  return new Set([...found.values()].flatMap((indices) => [...indices]));
}

/** Returns the module with a trap in place of each of them. @param {Buffer} wasm @returns {Buffer<ArrayBuffer>} */
export function withoutUnreached(wasm) {
  const module = new WebAssembly.Module(/** @type {Buffer<ArrayBuffer>} */ (wasm));
  const trapped = unreached(module);
  const first = WebAssembly.Module.imports(module).filter(({ kind }) => kind === 'function').length;
  const file = new Reader(wasm, 8);
  for (;;) {
    const start = file.at;
    const kind = wasm[file.at++];
    const section = new Reader(file.piece());
    if (kind !== CODE_SECTION) continue;
    const count = section.number();
    const bodies = Array.from({ length: count }, (_, at) => {
      const begin = section.at;
      section.piece();
      return trapped.has(first + at) ? TRAP : section.bytes.subarray(begin, section.at);
    });
    const code = Buffer.concat([leb128(count), ...bodies]);
    return Buffer.concat([wasm.subarray(0, start), Uint8Array.of(kind), leb128(code.length), code, wasm.subarray(file.at)]);
  }
}
