// Files of recorded tensors (tests/golden/digests.json), and documents that state digests of them: JSON state dicts and receipts.
import { createHash } from 'node:crypto';
import { safetensors } from '../torture/safetensors.mjs';

/** Returns a safetensors file of recorded tensors. */
export const recorded = (tensors) =>
  safetensors(
    tensors.map(({ name, dtype, shape, bytes_hex: hex }) => [
      name,
      { dtype, shape, bytes: Buffer.from(hex, 'hex') },
    ]),
  );

/** Returns a JSON state dict of recorded tensors, with groups if there are any, that states these digests. */
export function stateDict(tensors, groups, digests) {
  const entries = tensors.map(({ name, dtype, shape, bytes_hex: hex }) => [
    name,
    { dtype, shape, data: Buffer.from(hex, 'hex').toString('base64') },
  ]);
  const record = ({ name, dtype, shape }) => {
    const [parameter, word] = name.split(':');
    const path = groups.find(({ members }) =>
      members.some((member) => member.parameter === parameter),
    ).model_tree_path;
    return [
      name,
      {
        path: word ? [...path, word] : path,
        role: word ? `state:${word}` : 'parameter',
        dtype,
        shape,
        file: 'state_dict',
      },
    ];
  };
  const identity = {
    model_family: 'small',
    revision: 'r1',
    checkpoint_family: 'tabtune.train',
    checkpoint_ref: 'step-7',
  };
  const manifest = groups && {
    format: 'tabtune.manifest',
    version: 1,
    identity,
    tensors: Object.fromEntries(tensors.map(record)),
    groups,
  };
  return JSON.stringify({
    format: 'tabtune.torch_state_dict_json',
    version: 1,
    encoding: 'base64',
    manifest,
    digests,
    state_dict: Object.fromEntries(entries),
  });
}

/** Returns a value whose objects have their keys in order. */
const sorted = (value) => {
  if (Array.isArray(value) || typeof value !== 'object' || value === null)
    return Array.isArray(value) ? value.map(sorted) : value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key])]),
  );
};

/** Returns a receipt that states that these files were written and have these digests, with its own digest (crate/FORMATS.md, "Digests"). */
export function receipt(files, digests) {
  const sum = (bytes) => createHash('sha256').update(bytes).digest('hex');
  const outputs = Object.entries(files).map(([name, bytes]) => ({
    role: name.startsWith('optimizer') ? 'optimizer' : 'weights',
    name,
    format: 'safetensors',
    bytes: bytes.length,
    sha256: sum(bytes),
  }));
  const document = {
    version: 1,
    operation: 'export',
    tool: { name: 'tabtune', version: '0.1.0' },
    inputs: [],
    outputs,
    digests,
    tensors: { admitted: [], dropped: [], renamed: [], converted: [] },
    groups: { admitted: [], dropped: [] },
    conversions: [],
    checks: [],
    warnings: [],
  };
  const long = (text) => {
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(Buffer.byteLength(text)));
    return Buffer.concat([length, Buffer.from(text)]);
  };
  return {
    ...document,
    receipt_digest: sum(
      Buffer.concat([
        Buffer.from([10]),
        long('tabtune/receipt/1'),
        long(JSON.stringify(sorted(document))),
      ]),
    ),
  };
}
