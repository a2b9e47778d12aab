// Runs in the page: the package, and helpers that scenarios share.
import * as tabtune from '/dist/index.js';

export { tabtune };

/** Values that a later scenario in the same page uses. @type {Record<string, any>} */
export const held = {};

/** Creates a model and a trainer from scratch. @param {import('./scenario.mjs').Setting} setting */
export async function create({ shape, text, options }) {
  const model = await tabtune.newModel(shape, { text });
  return tabtune.Trainer.create({ model, data: { text }, ...options });
}

/** Takes steps, and returns their losses. @param {tabtune.Trainer} trainer @param {number} count */
export const losses = async (trainer, count) => (await trainer.step(count)).map(({ loss }) => loss);

/** Trains `count` steps without a break, and returns their losses. @param {import('./scenario.mjs').Setting} setting @param {number} count */
export async function unbroken(setting, count) {
  const trainer = await create(setting);
  const found = await losses(trainer, count);
  await trainer.dispose();
  return found;
}

/** Takes steps and ends a run; returns its losses and norms, its evaluation, and its exported files as digests. @param {tabtune.Trainer} trainer @param {number} count */
export async function finished(trainer, count) {
  const steps = await trainer.step(count);
  const { loss } = await trainer.evaluate();
  const files = await trainer.exportFiles();
  await trainer.dispose();
  return {
    losses: steps.map((step) => step.loss),
    norms: steps.map(({ gradNorm }) => gradNorm),
    loss,
    bytes: await Promise.all(files.map(async ({ name, blob }) => [name, await digest(blob)])),
  };
}

/** Returns the SHA-256 of a file, in words. @param {Blob} blob */
const digest = async (blob) =>
  String(new Uint8Array(await crypto.subtle.digest('SHA-256', await blob.arrayBuffer())));

/**
 * Returns how a call fails: with a TabtuneError, whose class, word and path it states; or in another way, in words.
 * @param {Promise<unknown> | (() => unknown)} work
 * @returns {Promise<{ code: string, name?: string, word?: string, path?: string, tensor?: string, message: string }>}
 */
export async function failure(work) {
  try {
    const late = new Promise((resolve) => setTimeout(resolve, 30_000, 'late'));
    const end = await Promise.race([typeof work === 'function' ? work() : work, late]);
    return { code: end === 'late' ? 'it hangs' : 'none', message: '' };
  } catch (/** @type {any} */ thrown) {
    if (!(thrown instanceof tabtune.TabtuneError)) return { code: 'raw', message: String(thrown) };
    const { name, code, message, detail } = thrown;
    const { code: word, path, tensor } = detail;
    return { code, name, word, path, tensor, message };
  }
}

/** Observes workers from now on; returns those that were not ended. */
export function openWorkers() {
  const open = new Set();
  globalThis.Worker = class extends Worker {
    /** @param {string | URL} url @param {WorkerOptions} [options] */
    constructor(url, options) {
      super(url, options);
      open.add(this);
    }
    /** @override */
    terminate() {
      open.delete(this);
      super.terminate();
    }
  };
  return open;
}

/** @param {number} millis */
export const pause = (millis) => new Promise((done) => setTimeout(done, millis));

/** Returns the bytes of a text in base64. @param {string} text */
export const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

/** Returns exported files, as a person would choose them. @param {readonly { name: string, blob: Blob }[]} exported */
export const filesOf = (exported) => exported.map(({ name, blob }) => new File([blob], name));
