// wasm-bindgen ends the name of each import in 16 hexadecimal digits, which do not compress: without them the worker's script is 3.5 kB smaller.

const HASHED = /^(__wbg_\w+)_[0-9a-f]{16}$/;
const IMPORTS = 2;
/** Bytes before the first section: the magic number and the version. */
const HEAD = 8;
/** The kind of an imported function. Other imports are described by other bytes. */
const FUNCTION = 0;

/** An unsigned number as LEB128. @param {number} value */
export function encoded(value) {
  const bytes = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...bytes, rest];
    bytes.push((rest % 128) + 128);
  }
}

/** Reads a module from its beginning. */
class Reader {
  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.bytes = bytes;
    this.offset = 0;
  }

  number() {
    for (let [value, factor] = [0, 1]; ; factor *= 128) {
      const byte = this.bytes[this.offset++];
      if (byte === undefined) throw new Error('the module ends within a number');
      value += (byte % 128) * factor;
      if (byte < 128) return value;
    }
  }

  /** @param {number} length */
  take(length) {
    this.offset += length;
    return this.bytes.subarray(this.offset - length, this.offset);
  }

  name() {
    return new TextDecoder().decode(this.take(this.number()));
  }
}

/** Returns a name as it is written in a module. @param {string} text */
export function named(text) {
  const bytes = new TextEncoder().encode(text);
  return [...encoded(bytes.length), ...bytes];
}

/** Returns the imports of a section. @param {Uint8Array} section */
function importsIn(section) {
  const reader = new Reader(section);
  return Array.from({ length: reader.number() }, () => {
    const [module, name, kind] = [reader.name(), reader.name(), reader.number()];
    if (kind !== FUNCTION) throw new Error(`the import ${name} is no function`);
    return { module, name, type: reader.number() };
  });
}

/** Returns a short name for each of these that has digits; names that would be equal are counted. @param {string[]} names */
function shortened(names) {
  /** @type {Map<string, string>} */
  const short = new Map();
  const taken = new Set(names);
  for (const name of names) {
    const [, stem] = HASHED.exec(name) ?? [];
    if (stem === undefined) continue;
    let unique = stem;
    for (let count = 2; taken.has(unique); count += 1) unique = `${stem}_${count}`;
    taken.add(unique);
    short.set(name, unique);
  }
  return short;
}

/** Returns the module and its glue with short names of imports. @param {Uint8Array} wasm @param {string} glue */
export function shortImports(wasm, glue) {
  /** @type {Map<string, string>} */
  let short = new Map();
  const reader = new Reader(wasm);
  const parts = [reader.take(HEAD)];
  while (reader.offset < wasm.length) {
    const start = reader.offset;
    const [id, length] = [reader.number(), reader.number()];
    const body = reader.take(length);
    if (id !== IMPORTS) parts.push(wasm.subarray(start, reader.offset));
    else {
      const imports = importsIn(body);
      short = shortened(imports.map(({ name }) => name));
      const section = encoded(imports.length);
      for (const { module, name, type } of imports)
        section.push(
          ...named(module),
          ...named(short.get(name) ?? name),
          FUNCTION,
          ...encoded(type),
        );
      parts.push(Uint8Array.from([id, ...encoded(section.length), ...section]));
    }
  }
  const text = glue.replace(/\b__wbg_\w+_[0-9a-f]{16}\b/g, (name) => {
    const found = short.get(name);
    if (found === undefined) throw new Error(`the module does not import ${name}`);
    return found;
  });
  return { wasm: Buffer.concat(parts), glue: text };
}
