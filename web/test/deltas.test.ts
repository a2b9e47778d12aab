/** Deltas, plans and single tensors of files: the requests to the core, and what the page refuses before. */
import { describe, expect, it } from 'vitest';

import { applyDelta, deriveDelta, inspectFiles, readTensor, removeDelta } from '../src/index.js';
import type { DeltaFiles, ExportTarget } from '../src/index.js';
import { fakeWorker } from '../src/testing/channel.js';
import { Origin, StoredFolder } from './origin.js';

const [base, target] = ['base.gguf', 'target.gguf'].map((name) => new File(['GGUF'], name)) as [
  File,
  File,
];
const worker = fakeWorker;
const saidBy = async ({ files }: DeltaFiles): Promise<unknown> =>
  JSON.parse((await files[0]?.blob.text()) ?? '');
const refused = async (call: Promise<unknown>, path: string): Promise<void> => {
  await expect(call).rejects.toMatchObject({ code: 'BAD_OPTION', detail: { path } });
};

describe('a delta', () => {
  it('is_derived_and_used', async () => {
    const derived = await deriveDelta([base], target, { name: 'mine', worker });
    expect(await saidBy(derived)).toMatchObject({ base: 1, target: ['target.gguf'], name: 'mine' });
    expect(derived.report).toEqual({
      ...{ name: 'delta', baseWeights: 'a', targetWeights: 'b', changed: ['c'] },
    });
    const bytes = new Uint8Array(4);
    expect(await saidBy(await applyDelta(base, bytes, { worker }))).toMatchObject({
      ...{ model: ['base.gguf'], delta: 'delta.safetensors', remove: false },
    });
    expect(await saidBy(await removeDelta(target, bytes, { worker }))).toMatchObject({
      ...{ model: ['target.gguf'], remove: true },
    });
    const to = new StoredFolder('picked', new Origin()) as unknown as ExportTarget & StoredFolder;
    expect((await deriveDelta(base, target, { to, worker })).files).toEqual([]);
    expect(await to.getFileHandle('model.gguf')).toBeDefined();
  });
  it('is_refused_with_wrong_arguments', async () => {
    await refused(deriveDelta([], target, { worker }), 'base');
    await refused(deriveDelta(base, [], { worker }), 'target');
    await refused(deriveDelta(base, target, { worker, name: 5 as unknown as string }), 'name');
    await refused(applyDelta(base, undefined as unknown as File, { worker }), 'delta');
    await refused(
      applyDelta(base, target, { worker, to: 'here' as unknown as ExportTarget }),
      'to',
    );
    const more = { worker, target: undefined };
    await refused(removeDelta(base, target, more), 'target');
  });
});

describe('a plan', () => {
  const request = { selection: { includePatterns: ['a*'] } };
  it('is_made_on_request', async () => {
    const { plan } = await inspectFiles(base, { plan: true, request, worker });
    expect(JSON.parse(plan?.planDigest ?? '')).toEqual({
      ...{ selection: { include_patterns: ['a*'] }, names: 'source' },
    });
    expect(plan?.entries).toMatchObject([{ name: 'base.gguf', begin: 0, end: 4, deferred: true }]);
    expect((await inspectFiles(base, { worker })).plan).toBeUndefined();
    const hf = await inspectFiles(base, { plan: true, names: 'hf', worker });
    expect([hf.plan, hf.refusals.map(({ code }) => code)]).toEqual([
      undefined,
      ['gguf.key.missing'],
    ]);
  });
  it('and_one_of_its_tensors_have_known_options', async () => {
    const { bytes, dtype, ...rest } = await readTensor(base, 'a', { request, names: 'hf', worker });
    expect([rest, [...bytes], JSON.parse(dtype)]).toEqual([
      { name: 'a', shape: [2] },
      [71, 71],
      { selection: { include_patterns: ['a*'] }, names: 'hf' },
    ]);
    await refused(inspectFiles(base, { names: 'hf', worker }), 'names');
    await refused(inspectFiles(base, { plan: 1 as unknown as boolean, worker }), 'plan');
    await refused(readTensor(base, 5 as unknown as string, { worker }), 'name');
    const late = { materializationPolicy: 'deferred' } as object;
    await refused(
      readTensor(base, 'a', { request: late, worker }),
      'request.materializationPolicy',
    );
    const finite = { nonFinite: 'warn' } as object;
    await refused(readTensor(base, 'a', { request: finite, worker }), 'request.nonFinite');
  });
});
