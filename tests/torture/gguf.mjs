// GGUF files put together without tabtune (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
import { ARRAY, TEXT, padded } from './in-browser/gguf.mjs';

export { taken } from './in-browser/gguf.mjs';

const u32 = (value) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};
const u64 = (value) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
};
const text = (value) => Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)]);

/** A metadata value: the kind's number and the bytes. */
export const ofText = (value) => [TEXT, text(value)];
export const ofU32 = (value) => [4, u32(value)];
export const ofF32 = (value) => [6, Buffer.from(Float32Array.of(value).buffer)];
export const ofTruth = (value) => [7, Buffer.from([value ? 1 : 0])];
const array = (kind, items) => [ARRAY, Buffer.concat([u32(kind), u64(items.length), ...items])];
export const ofTexts = (values) => array(TEXT, values.map(text));
export const ofI32s = (values) =>
  array(
    5,
    [Buffer.from(Int32Array.from(values).buffer)].flatMap((all) =>
      values.map((_, at) => all.subarray(4 * at, 4 * at + 4)),
    ),
  );
export const ofF32s = (values) =>
  array(
    6,
    [Buffer.from(Float32Array.from(values).buffer)].flatMap((all) =>
      values.map((_, at) => all.subarray(4 * at, 4 * at + 4)),
    ),
  );

const aligned = (part) => Buffer.concat([part, Buffer.alloc(padded(part.length) - part.length)]);

/** Returns the bytes before the data of tensors, which follow each other, each padded to 32 bytes; a tensor is `{ name, kind, dims, length }`. */
export function beginning(metadata, tensors) {
  const parts = [Buffer.from('GGUF'), u32(3), u64(tensors.length), u64(metadata.size)];
  for (const [key, [kind, bytes]] of metadata) parts.push(text(key), u32(kind), bytes);
  let offset = 0;
  for (const { name, kind, dims, length } of tensors) {
    parts.push(text(name), u32(dims.length), ...dims.map(u64), u32(kind), u64(offset));
    offset += padded(length);
  }
  return aligned(Buffer.concat(parts));
}

/** Returns a GGUF file of these parts; a tensor is `{ name, kind, dims, bytes }`. */
export function together(metadata, tensors) {
  const head = beginning(
    metadata,
    tensors.map(({ bytes, ...tensor }) => ({ ...tensor, length: bytes.length })),
  );
  return Buffer.concat([head, ...tensors.map(({ bytes }) => aligned(bytes))]);
}
