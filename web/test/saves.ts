/** Saves of made-up checkpoints, and the contents of the database. */
import { openDB } from 'idb';
import { expect } from 'vitest';

import type { HistoryEntry } from '../src/protocol/events.js';
import { CHUNK_BYTES } from '../src/worker/storage/database.js';
import type { CheckpointStore, SaveRequest } from '../src/worker/storage/checkpoints.js';

export const bytesOf = (seed: number, length: number): Uint8Array<ArrayBuffer> =>
  new Uint8Array(length).map((_, i) => (i * 7 + seed) & 255);

export const registered = (store: CheckpointStore, run: string): Promise<void> =>
  store.registerRun({ run, label: 'label', createdAt: 1, dataName: 'some.txt', driver: '{}' });

/** Returns pieces of contents in the form in which the core returns them. */
export function streamed(contents: [string, Uint8Array][]): Pick<SaveRequest, 'files' | 'next'> {
  const pieces = contents.flatMap(([, bytes]) =>
    Array.from({ length: Math.ceil(bytes.byteLength / CHUNK_BYTES) }, (_, i) =>
      bytes.subarray(i * CHUNK_BYTES, (i + 1) * CHUNK_BYTES),
    ),
  );
  return {
    files: contents.map(([name, bytes]) => ({ name, bytes: bytes.byteLength })),
    next: async () => pieces.shift(),
  };
}

export const contentsOf = (seed: number, length = 1000): [string, Uint8Array][] => [
  ['model.safetensors', bytesOf(seed, length)],
  ['checkpoint.json', new TextEncoder().encode(`{"seed":${seed}}`)],
];

export function requestOf(
  run: string,
  seed: number,
  more: Partial<SaveRequest> & { length?: number } = {},
): SaveRequest {
  const { length, ...rest } = more;
  const meta = {
    step: seed,
    totalSteps: 9,
    loss: 2.5,
    environment: { version: '0', adapter: 'none' },
    saveTotalLimit: 2,
  };
  return { run, label: 'label', ...streamed(contentsOf(seed, length)), meta, ...rest };
}

export const stepEntry = (step: number, loss = step / 10): HistoryEntry => ({
  type: 'step',
  step,
  epoch: step / 10,
  loss,
  gradNorm: 1,
  learningRate: 1e-3,
  tokens: 64,
  secs: 0.1,
});

/** Returns the model's bytes of a loaded generation. */
export async function modelOf(
  store: CheckpointStore,
  run: string,
  generation?: number,
): Promise<number[]> {
  const { files } = await store.load(run, generation);
  return [
    ...new Uint8Array((await files.get('model.safetensors')?.arrayBuffer()) ?? new ArrayBuffer(0)),
  ];
}

const STORES = ['chunks', 'manifests', 'heads', 'runs', 'history'] as const;
/** Returns the keys of everything that a run has in the database. */
export async function keysOf(run: string): Promise<Record<string, string[]>> {
  const database = await openDB('tabtune');
  const found: Record<string, string[]> = {};
  for (const store of STORES) {
    const keys = await database.getAllKeys(store);
    found[store] = keys
      .filter((key) => (Array.isArray(key) ? key[0] : key) === run)
      .map((key) => (Array.isArray(key) ? key.slice(1).map(Number).join('/') : ''));
  }
  database.close();
  return found;
}
export const NOTHING = { chunks: [], manifests: [], heads: [], runs: [], history: [] };

/** Checks that the first generation is still the head, unchanged, and that nothing of a failed save remains. */
export async function expectOldHead(store: CheckpointStore, run: string): Promise<void> {
  expect(await keysOf(run)).toEqual({
    chunks: ['1/0', '1/1'],
    manifests: ['1'],
    heads: [''],
    runs: [''],
    history: ['1'],
  });
  expect(await modelOf(store, run)).toEqual([...bytesOf(1, 1000)]);
}

/** Changes stored values behind the store's back. */
export async function tamper(
  work: (database: Awaited<ReturnType<typeof openDB>>) => Promise<unknown>,
): Promise<void> {
  const database = await openDB('tabtune');
  await work(database);
  database.close();
}

export const flip = (run: string, generation: number, index: number): Promise<void> =>
  tamper(async (database) => {
    const chunk = new Uint8Array(
      ((await database.get('chunks', [run, generation, index])) as ArrayBuffer).slice(0),
    );
    chunk[0] = (chunk[0] ?? 0) ^ 1;
    await database.put('chunks', chunk.buffer, [run, generation, index]);
  });
