// Runs in the page: an adapter on a model on disk, and its time and memory.
import * as s from './subject.mjs';

async function timed(work) {
  const from = performance.now();
  const value = await work();
  return [value, (performance.now() - from) / 1000];
}

/** Adds the input to which a test passes the file of the model. */
export function field() {
  document.body.append(
    Object.assign(document.createElement('input'), { type: 'file', id: 'model' }),
  );
}

/** Starts a new run on that model; returns the times, and the planned memory of the settings. @param {{ text: string, options: object }} setting */
async function begun({ text, options }) {
  const [model, open] = await timed(() =>
    s.tabtune.openModel(document.querySelector('#model').files?.[0] ?? [], { worker: s.workers() }),
  );
  const planned = await s.tabtune.Trainer.estimate(model, options);
  const [, create] = await timed(async () =>
    s.adopt(await s.tabtune.Trainer.create({ model, data: { text }, autosave: false, ...options })),
  );
  return { planned, open, create };
}

/** Returns the growth of the wasm memory since its start, the bytes of the model on the GPU, and those of all buffers there, current and peak. */
async function bytes() {
  const { base, adapter, gpuBytes } = await s.current().info();
  const { wasm, wasmAtStart, mostBytes } = await s.tell('counts');
  return {
    wasm: wasm - wasmAtStart,
    base: base.bytes,
    trained: adapter.parameters,
    now: gpuBytes,
    most: mostBytes,
  };
}

/** Returns the seconds of each call until the first step is done or refused, and the bytes. */
export async function first(setting) {
  const seconds = await begun(setting);
  const opened = await bytes();
  const { ok, ms, code, message } = await s.settled(s.step(1));
  const found = ok
    ? { ...seconds, step: ms / 1000, ...(await bytes()) }
    : { ...seconds, refused: `${code}: ${message}`, ...opened };
  await s.current().dispose();
  return found;
}

/**
 * Makes a whole run, whose last step is profiled; returns the loss of `windows` held-out windows before and after, and the peak bytes of buffers in
 * use.
 * @param {{ windows: number, text: string, options: { steps: number } }} setting
 */
export async function whole({ windows, ...setting }) {
  const { planned } = await begun(setting);
  const held = async () => (await s.current().evaluate({ maxBatches: windows })).loss;
  const before = await held();
  await s.step(1);
  const count = setting.options.steps - 2;
  const [, steps] = await timed(() => s.step(count));
  const { inUseBytes } = await s.current().profile(1);
  const found = {
    planned,
    before,
    after: await held(),
    step: steps / count,
    inUse: inUseBytes,
    ...(await bytes()),
  };
  await s.current().dispose();
  return found;
}
