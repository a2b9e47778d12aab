/** A stand-in for the wasm core: the same interface, arithmetic instead of a model. For tests only; it is never part of a build. */

import type { JsData, JsSource, Values } from 'tabtune-wasm';
import { currentWorker } from './fake-gpu.js';
import { called, fake, slices } from './fake-calls.js';
import { exportedAs } from './fake-files.js';
import type { FileStream } from './fake-files.js';
import { choices } from './fake-model.js';

export type { JsSource } from 'tabtune-wasm';
export { estimate, ModelHandle } from './fake-model.js';
export { FileStream } from './fake-files.js';
export { measureGpu } from './fake-measurement.js';
export { fake } from './fake-calls.js';
export { Session } from './fake-session.js';
export { LoadedModel, TokenStream } from './fake-tokens.js';

export default async function init(options: { module_or_path: unknown }): Promise<unknown> {
  fake.loads += 1;
  fake.source = options.module_or_path;
  return undefined;
}
export const version = (): string => 'fake';
/** An empty module of WebAssembly, which begins with its name and version. */
export const compiled = (): WebAssembly.Module =>
  new WebAssembly.Module(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0));
export const setPanicHook = (onPanic: (message: string) => void): void =>
  void (currentWorker().state.onPanic = onPanic);
export const requestAbort = (): void => void (currentWorker().state.abortAsked = true);
export const clearAbort = (): void => void (currentWorker().state.abortAsked = false);
export const inspectData = ({ files }: JsData, _config: string, partial: boolean): unknown =>
  files.map(({ name, size }) => ({
    name,
    form: 'text',
    rows: null,
    shapes: {},
    columns: [],
    characters: partial ? size - 1 : size,
    warnings: [],
  }));
export const inspectFile = (
  file: JsSource,
  format: string | undefined,
  read: boolean,
  siblings: JsSource[] = [],
): unknown => ({
  ...{
    file: file.name,
    format: format ?? 'gguf',
    ok: true,
    stage: read ? 'read' : 'ok',
    warnings: [],
    tensors: siblings.length,
  },
  inventory: [
    {
      name: new TextDecoder('latin1').decode(file.read(0, Math.min(4, file.size))),
      dtype: 'F32',
      shape: [file.size],
    },
  ],
});
export function inspectModel(
  files: JsSource[],
  request: Values | undefined,
  adapter: JsSource[],
): unknown {
  const seen = { request: request, adapter: adapter.map(({ name }) => name) };
  const trainable = { ok: true, options: [{ optimizer: 'adamw', precision: 'f32', bytes: 4096 }] };
  return {
    kind: 'model',
    tensors: [],
    config: seen,
    contract: { rows: files.length },
    exports: choices,
    trainable,
    refusals: [],
    warnings: [],
    ...fake.inspection,
  };
}
export const verifyFiles = (files: JsSource[], receipt: Values | undefined): unknown => ({
  ok: JSON.stringify(receipt) !== '{}',
  checks: files.map(({ name }) => ({
    name,
    result: receipt === undefined ? 'skipped' : 'verified',
  })),
});
export async function extractAdapter(
  tuned: JsSource[],
  base: JsSource[],
  options: Values,
  onProgress: (done: number, total: number) => void,
): Promise<{ report: unknown; warnings: unknown; stream: FileStream }> {
  onProgress(1, 2);
  await slices(4, 5);
  const tensors = Object.fromEntries(
    [...tuned, ...base].map(({ name }) => [name, { error: 0.5, norm: 2 }]),
  );
  const { r } = options as { r: number };
  return {
    report: { rank: r, error: 0.5, tensors, uncovered: {} },
    warnings: [],
    stream: exportedAs(options, [], new Uint8Array(4)),
  };
}

/** Learns nothing: the document names the settings and the files. */
export async function trainTokenizer(
  data: JsData,
  options: Values,
  settings: Values,
  partial: boolean,
  onProgress: (read: number) => void,
): Promise<{ json: Uint8Array; vocabSize: number }> {
  const sizes = data.files.map(({ size }) => size);
  onProgress((sizes[0] ?? 0) / 2);
  await slices(4, 5);
  onProgress(sizes.reduce((sum, size) => sum + size, 0));
  const { vocab_size: vocabSize = 8192 } = options as { vocab_size?: number };
  const files = data.files.map(({ name }) => name);
  const json = new TextEncoder().encode(JSON.stringify({ options, settings, partial, files }));
  return { json, vocabSize };
}

/** Plans one tensor of each file; a request for the names of Hugging Face is refused. */
export async function planFiles(files: JsSource[], request: Values): Promise<unknown> {
  if (request['names'] === 'hf') {
    const refusal = { code: 'gguf.key.missing', stage: 'open', artifact: 'a', subject: 'x' };
    return { plan: null, refusals: [refusal] };
  }
  const entries = files.map(({ name, size }) => ({
    ...{ name, sourceKey: name, file: name, begin: 0, end: size, dtype: 'U8', shape: [size] },
    deferred: true,
  }));
  const planDigest = JSON.stringify(request);
  return {
    plan: { sourceFormat: 'gguf', planDigest, entries, groups: [], warnings: [] },
    refusals: [],
  };
}
export const readTensor = async (
  [file]: JsSource[],
  name: string,
  request: Values,
): Promise<unknown> => ({
  name,
  dtype: JSON.stringify(request),
  shape: [2],
  bytes: file?.read(0, 2).slice(),
});
const deltaOf = (options: Values): { report: unknown; stream: FileStream } => ({
  report: { name: 'delta', baseWeights: 'a', targetWeights: 'b', changed: ['c'] },
  stream: exportedAs({ ...options, format: 'gguf' }, [], new Uint8Array()),
});
export const deriveDelta = async (
  base: JsSource[],
  target: JsSource[],
  name: string,
): Promise<{ report: unknown; stream: FileStream }> =>
  deltaOf({ base: base.length, target: target.map((file) => file.name), name });
export const useDelta = async (
  model: JsSource[],
  delta: JsSource,
  remove: boolean,
): Promise<{ report: unknown; stream: FileStream }> =>
  deltaOf({ model: model.map(({ name }) => name), delta: delta.name, remove });

export async function initDevice(): Promise<unknown> {
  const { state, scope } = currentWorker();
  state.initialised += 1;
  await called('init');
  const Adapter = scope.GPUAdapter as unknown as new () => GPUAdapter;
  const adapter = new Adapter();
  // Requests all features that it sees, as wgpu does.
  if (!adapter.features.has('timestamp-query')) state.onPanic('timestamp-query is needed');
  await adapter.requestDevice({ requiredFeatures: [...adapter.features] as GPUFeatureName[] });
  return {
    adapter: '',
    driver: '',
    backend: 'none',
    limits: { maxBufferSize: 0, maxStorageBufferBindingSize: 0 },
  };
}
