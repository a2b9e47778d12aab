// Runs in the page: a packed base, and trainers of adapters on it.
import * as s from './subject.mjs';

export { s };

/** Returns a model of this shape and seed as one GGUF file whose matrices are of this type; equal settings give equal bytes. */
export async function base({ shape, text, type, seed = 7 }) {
  const model = await s.tabtune.newModel(shape, { text }, { worker: s.workers() });
  await using made = await s.tabtune.Trainer.create({
    model,
    data: { text },
    steps: 1,
    batchSize: 1,
    seqLen: 3,
    seed,
    autosave: false,
  });
  return new File([await made.export({ format: 'gguf', type })], 'base.gguf');
}

/** Returns the file with one bit in its middle flipped. */
export async function flipped(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  bytes[bytes.length >> 1] ^= 1;
  return new File([bytes], file.name);
}

/** Returns a trainer of this model on a text. */
export const trainer = (model, text, options) =>
  s.tabtune.Trainer.create({ model, data: { text }, ...options });

/** Starts a new run on this base. */
export async function start(file, { text, options }) {
  const model = await s.tabtune.openModel(file, { worker: s.workers() });
  return s.adopt(await trainer(model, text, options));
}

/** Returns the files of the trained adapter, without the receipt. */
export async function peft() {
  const files = await s.current().exportFiles({ format: 'peft' });
  return files
    .filter(({ name }) => name !== 'tabtune.receipt.json')
    .map(({ name, blob }) => new File([blob], name));
}

/** Returns digests of its configuration and values. */
export async function adapter() {
  const files = (await peft()).filter(({ name }) => name.startsWith('adapter_'));
  return Object.fromEntries(
    await Promise.all(files.map(async (file) => [file.name, await s.digest(file)])),
  );
}
