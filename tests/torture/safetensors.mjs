// Safetensors files put together without tabtune (https://github.com/huggingface/safetensors#format).

/**
 * Returns a safetensors file of these tensors, in their order, whose header is padded to a multiple of 8 bytes.
 * @param {[string, { dtype: string, shape: number[], bytes: Buffer }][]} tensors @param {Record<string, string>} [metadata]
 */
export function safetensors(tensors, metadata) {
  const header = metadata ? { __metadata__: metadata } : {};
  let end = 0;
  for (const [name, { dtype, shape, bytes }] of tensors)
    header[name] = { dtype, shape, data_offsets: [end, (end += bytes.length)] };
  const text = JSON.stringify(header);
  const json = Buffer.from(text.padEnd(Math.ceil(text.length / 8) * 8));
  const front = Buffer.alloc(8);
  front.writeBigUInt64LE(BigInt(json.length));
  return Buffer.concat([front, json, ...tensors.map(([, { bytes }]) => bytes)]);
}
