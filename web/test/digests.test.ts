import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

/** A second implementation of the formulas in crate/FORMATS.md, "Digests", tested on vectors made by a Python program. */
type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
interface Tensor {
  name: string;
  dtype: string;
  shape: number[];
  bytes_hex: string;
  leaf: string;
}
interface Vectors {
  vector1: { tensors: Tensor[]; weights_digest: string };
  vector2: {
    parameters: Tensor[];
    state: Tensor[];
    groups: Record<string, Json>[];
    assignment_text: string;
    weights_digest: string;
    optimizer_digest: string;
    assignment_digest: string;
    state_digest: string;
    empty: Record<'weights_digest' | 'optimizer_digest' | 'assignment_digest', string>;
  };
  vector3: {
    assets_hex: Record<string, string>;
    record_text: string;
    templates_hex: Record<string, string>;
    tokenizer_digest: string;
    template_digest: string;
    identity: {
      model_family: string;
      revision: string;
      checkpoint_family: string;
      checkpoint_ref: string | null;
    };
    bundle_digest: string;
    bundle_digest_with_ref: string;
    bundle_digest_weights_only: string;
  };
}

const path = new URL('../../tests/golden/digests.json', import.meta.url);
const { vector1, vector2, vector3 } = JSON.parse(readFileSync(path, 'utf8')) as Vectors;

const fromHex = (hex: string): Buffer => Buffer.from(hex, 'hex');
const sha256 = (...parts: Uint8Array[]): Buffer =>
  parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest();
const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};
const u64 = (value: number): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
};
const text = (value: string | Uint8Array): Buffer => {
  const bytes = Buffer.from(value);
  return Buffer.concat([u64(bytes.length), bytes]);
};
const optional = (value: Uint8Array | null): Buffer =>
  value ? Buffer.concat([Buffer.from([1]), value]) : Buffer.from([0]);
const tagged = (tag: number, label: string, ...parts: Uint8Array[]): Buffer =>
  sha256(Buffer.from([tag]), text(label), ...parts);

/** RFC 8785: no space, keys by UTF-16 code units, numbers and texts as ECMAScript writes them. */
const canonical = (value: Json): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const fields = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key] ?? null)}`);
  return `{${fields.join(',')}}`;
};

/** Entries in ascending order of the bytes of their names. */
const ascending = <T>(entries: [string, T][]): [string, T][] =>
  entries.sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));

const leaf = ({ name, dtype, shape, bytes_hex }: Tensor): Buffer =>
  tagged(
    0,
    'tabtune/tensor/1',
    text(name),
    text(dtype),
    u32(shape.length),
    ...shape.map(u64),
    sha256(fromHex(bytes_hex)),
  );
const leaves = (tag: number, label: string, tensors: Tensor[]): Buffer => {
  const rows = ascending(tensors.map((tensor) => [tensor.name, leaf(tensor)]));
  return tagged(tag, label, u64(rows.length), ...rows.map(([, digest]) => digest));
};
const weights = (tensors: Tensor[]): Buffer => leaves(1, 'tabtune/weights/1', tensors);
const optimizer = (tensors: Tensor[]): Buffer => leaves(2, 'tabtune/optimizer/1', tensors);
const assigned = (groups: Record<string, Json>[]): string =>
  canonical(
    groups.map((group) =>
      Object.fromEntries(Object.entries(group).filter(([key]) => !key.startsWith('residency'))),
    ),
  );
const assignment = (groups: Record<string, Json>[]): Buffer =>
  tagged(3, 'tabtune/assignment/1', text(assigned(groups)));
const bundle = (identity: Vectors['vector3']['identity'], parts: (Buffer | null)[]): string => {
  const { model_family, revision, checkpoint_family, checkpoint_ref } = identity;
  const reference = checkpoint_ref === null ? null : text(checkpoint_ref);
  const names = [model_family, revision, checkpoint_family].map((name) => text(name));
  return tagged(
    6,
    'tabtune/bundle/1',
    ...names,
    optional(reference),
    ...parts.map(optional),
  ).toString('hex');
};

const ofTwo = {
  weights: weights(vector2.parameters),
  optimizer: optimizer(vector2.state),
  assignment: assignment(vector2.groups),
};

// line 26
describe('digests', () => {
  it('digests_of_tensors_and_weights', () => {
    for (const tensor of [...vector1.tensors, ...vector2.parameters, ...vector2.state])
      expect(leaf(tensor).toString('hex')).toBe(tensor.leaf);
    expect(weights(vector1.tensors).toString('hex')).toBe(vector1.weights_digest);
    expect(weights([...vector1.tensors].reverse()).toString('hex')).toBe(vector1.weights_digest);
  });
  it('digests_of_a_state_with_groups', () => {
    expect(assigned(vector2.groups)).toBe(vector2.assignment_text);
    expect(ofTwo.weights.toString('hex')).toBe(vector2.weights_digest);
    expect(ofTwo.optimizer.toString('hex')).toBe(vector2.optimizer_digest);
    expect(ofTwo.assignment.toString('hex')).toBe(vector2.assignment_digest);
    expect(
      tagged(7, 'tabtune/state/1', ofTwo.weights, ofTwo.optimizer, ofTwo.assignment).toString(
        'hex',
      ),
    ).toBe(vector2.state_digest);
    const empty = {
      weights_digest: weights([]),
      optimizer_digest: optimizer([]),
      assignment_digest: assignment([]),
    };
    expect(
      Object.fromEntries(
        Object.entries(empty).map(([name, digest]) => [name, digest.toString('hex')]),
      ),
    ).toEqual(vector2.empty);
  });
  it('digests_of_a_tokenizer_its_templates_and_a_bundle', () => {
    const assets = ascending(Object.entries(vector3.assets_hex)).flatMap(([name, hex]) => [
      text(name),
      sha256(fromHex(hex)),
    ]);
    const record = JSON.parse(vector3.record_text) as Json;
    expect(canonical(record)).toBe(vector3.record_text);
    const tokenizer = tagged(
      4,
      'tabtune/tokenizer/1',
      u64(assets.length / 2),
      ...assets,
      text(canonical(record)),
    );
    expect(tokenizer.toString('hex')).toBe(vector3.tokenizer_digest);
    const templates = ascending(Object.entries(vector3.templates_hex)).flatMap(([name, hex]) => [
      text(name),
      text(fromHex(hex)),
    ]);
    const template = tagged(5, 'tabtune/template/1', u64(templates.length / 2), ...templates);
    expect(template.toString('hex')).toBe(vector3.template_digest);

    const parts = [ofTwo.weights, ofTwo.optimizer, ofTwo.assignment, tokenizer, template];
    expect(bundle(vector3.identity, parts)).toBe(vector3.bundle_digest);
    expect(bundle({ ...vector3.identity, checkpoint_ref: 'opfs:run/7' }, parts)).toBe(
      vector3.bundle_digest_with_ref,
    );
    expect(bundle(vector3.identity, [ofTwo.weights, null, null, tokenizer, null])).toBe(
      vector3.bundle_digest_weights_only,
    );
  });
});
