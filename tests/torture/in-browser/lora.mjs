// Runs in the page: an adapter beside a model that lies on the disk, and what that takes.
import * as s from './subject.mjs';

async function timed(work) {
  const from = performance.now();
  const value = await work();
  return [value, (performance.now() - from) / 1000];
}

/** Where a test puts the file of the model. */
export function field() {
  document.body.append(Object.assign(document.createElement('input'), { type: 'file', id: 'model' }));
}

/** A new run beside that model, with what the settings are planned to take. */
async function begun({ text, options }) {
  const [model, open] = await timed(() => s.tabtune.openModel(document.querySelector('#model').files[0], { worker: s.workers() }));
  const planned = await s.tabtune.Trainer.estimate(model, options);
  const [, create] = await timed(async () => s.adopt(await s.tabtune.Trainer.create({ model, data: { text }, autosave: false, ...options })));
  return { planned, open, create };
}

/** Bytes of the wasm memory since its start, of the model on the GPU, and of all buffers there, now and at most. */
async function bytes() {
  const { base, adapter, gpuBytes } = await s.current().inspect();
  const { wasm, wasmAtStart, mostBytes } = await s.tell('counts');
  return { wasm: wasm - wasmAtStart, base: base.bytes, trained: adapter.parameters, now: gpuBytes, most: mostBytes };
}

/** The seconds of each call until the first step is done or refused, and the bytes. */
export async function first(setting) {
  const seconds = await begun(setting);
  const opened = await bytes();
  const { ok, ms, code, message } = await s.settled(s.step(1));
  const found = ok ? { ...seconds, step: ms / 1000, ...(await bytes()) } : { ...seconds, refused: `${code}: ${message}`, ...opened };
  await s.current().dispose();
  return found;
}

/** A whole run, of which the last step is profiled: the loss of so many held-out windows before and after, and the most bytes that buffers used. */
export async function whole({ windows, ...setting }) {
  const { planned } = await begun(setting);
  const held = async () => (await s.current().evaluate({ maxBatches: windows })).loss;
  const before = await held();
  await s.step(1);
  const count = setting.options.steps - 2;
  const [, steps] = await timed(() => s.step(count));
  const { inUseBytes } = await s.current().profile(1);
  const found = { planned, before, after: await held(), step: steps / count, inUse: inUseBytes, ...(await bytes()) };
  await s.current().dispose();
  return found;
}
