// The program of every consumer: a new model learns a text for five steps, and the losses are written into the page.
import { newModel, Trainer } from 'tabtune';

const text =
  'It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife. '.repeat(
    20,
  );
const shape = {
  hiddenSize: 16,
  numHiddenLayers: 1,
  numAttentionHeads: 2,
  maxPositionEmbeddings: 32,
};
const options = { steps: 5, batchSize: 1, seqLen: 16, learningRate: 1e-2, seed: 7 };

/**
 * Returns the losses; `assets` are the addresses of the worker and the wasm.
 * @param {import('tabtune').WorkerOptions} [assets] @returns {Promise<number[]>}
 */
export async function losses(assets) {
  const model = await newModel(shape, { text }, assets);
  const trainer = await Trainer.create({ model, data: { text }, autosave: false, ...options });
  const found = [];
  for await (const event of trainer.run()) if (event.type === 'step') found.push(event.loss);
  await trainer.dispose();
  return found;
}

/** Trains and shows the losses in the page. @param {import('tabtune').WorkerOptions} [assets] */
export async function show(assets) {
  document.body.dataset.losses = JSON.stringify(await losses(assets));
}
