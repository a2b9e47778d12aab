// Parses GGUF files without tabtune, in a page and in Node.js (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
const ALIGNMENT = 32;
export const TEXT = 8;
export const ARRAY = 9;
/** Number of bytes of a metadata value by its kind, except for texts and arrays. */
const WIDTHS = [1, 1, 2, 2, 4, 4, 4, 1, undefined, undefined, 8, 8, 8];
export const padded = (length) => Math.ceil(length / ALIGNMENT) * ALIGNMENT;

/**
 * Returns `{ metadata: key → [kind, bytes], tensors: [{ name, kind, dims, begin, end }] }`; the dims in the order of the file, the bytes counted from
 * the file's first, including padding. For a long file its beginning suffices, with its length.
 */
export function taken(bytes, length = bytes.length) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 8;
  const count = () => Number(view.getBigUint64((at += 8) - 8, true));
  const number = () => view.getUint32((at += 4) - 4, true);
  const words = () => {
    const from = at + 8;
    at = from + count();
    return new TextDecoder().decode(bytes.subarray(from, at));
  };
  const pass = (kind) => {
    if (kind === TEXT) words();
    else if (kind === ARRAY) for (let item = number(), left = count(); left > 0; left--) pass(item);
    else at += WIDTHS[kind] ?? NaN;
  };
  const [tensorCount, keyCount] = [count(), count()];
  const metadata = new Map();
  for (let key = 0; key < keyCount; key++) {
    const [name, kind] = [words(), number()];
    const from = at;
    pass(kind);
    metadata.set(name, [kind, bytes.subarray(from, at)]);
  }
  const tensors = Array.from({ length: tensorCount }, () => ({
    name: words(),
    dims: Array.from({ length: number() }, count),
    kind: number(),
    offset: count(),
  }));
  const data = padded(at);
  const ends = [...tensors.map(({ offset }) => offset), length - data].sort((a, b) => a - b);
  return {
    metadata,
    tensors: tensors.map(({ offset, ...tensor }) => ({
      ...tensor,
      begin: data + offset,
      end: data + ends[ends.lastIndexOf(offset) + 1],
    })),
  };
}
