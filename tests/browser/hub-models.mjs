// Folders of a small model as a hub has them, and addresses for one of them.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../web/toolchain.mjs';

/** Addresses that people write and paste for one repository, after those of the hub. */
export const FORMS = [
  'hf:owner/tiny',
  'hf:owner/tiny@main',
  'hf://owner/tiny@main',
  'https://huggingface.co/owner/tiny',
  'https://huggingface.co/owner/tiny/tree/main',
  'https://hf.co/owner/tiny/tree/main?not-for-all-audiences=true',
];

/** @param {string} path */
export const golden = (path) => readFileSync(join(root, 'tests/golden/models', path));
export const FOLDER = {
  'config.json': golden('llama3/config.json'),
  'generation_config.json': Buffer.from('{}'),
  'model.safetensors': golden('llama3/model.safetensors'),
};

/** Writes tensors as a safetensors file. @param {Record<string, { data_offsets: [number, number] }>} tensors @param {Buffer} data */
function safetensors(tensors, data) {
  let at = 0;
  const moved = Object.entries(tensors).map(([name, tensor]) => {
    const [from, to] = tensor.data_offsets;
    at += to - from;
    return [name, { ...tensor, data_offsets: [at - (to - from), at] }];
  });
  const header = Buffer.from(JSON.stringify(Object.fromEntries(moved)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  const parts = Object.values(tensors).map(({ data_offsets: [from, to] }) =>
    data.subarray(from, to),
  );
  return Buffer.concat([length, header, ...parts]);
}

/** Returns the same folder with its weights in two shards. */
export function sharded() {
  const { 'model.safetensors': whole, ...others } = FOLDER;
  const start = 8 + Number(whole.readBigUInt64LE());
  const { __metadata__: _, ...tensors } = JSON.parse(whole.subarray(8, start).toString());
  const names = Object.keys(tensors);
  const halves = [names.slice(0, 9), names.slice(9)];
  const shard = (/** @type {number} */ at) => `model-0000${at + 1}-of-00002.safetensors`;
  const index = {
    metadata: { total_size: whole.length - start },
    weight_map: Object.fromEntries(
      halves.flatMap((half, at) => half.map((name) => [name, shard(at)])),
    ),
  };
  /** @type {Record<string, Buffer>} */
  const files = { ...others, 'model.safetensors.index.json': Buffer.from(JSON.stringify(index)) };
  halves.forEach((half, at) => {
    const part = Object.fromEntries(half.map((name) => [name, tensors[name]]));
    files[shard(at)] = safetensors(part, whole.subarray(start));
  });
  return files;
}
