/** A model and a trainer with the fake core, and the reports of its runs. */
import { beforeEach } from 'vitest';

import { newModel, openModel, Trainer } from '../src/index.js';
import type { CreateOptions, Model, TrainerEvent } from '../src/index.js';
import { resetFake } from '../src/testing/fake-calls.js';
import { resetGpu } from '../src/testing/fake-gpu.js';
import { fakeWorker, started } from '../src/testing/channel.js';
import { freshOrigin } from './origin.js';

export const origin = freshOrigin();
export const TEXT = {
  text: 'A sentence of some length to learn from. '.repeat(20),
  name: 'some.txt',
};
export const SHAPE = { hiddenSize: 8, numHiddenLayers: 1, numAttentionHeads: 2 };

/** Opens a model of the smallest file. */
export const opened = (): Promise<Model> =>
  openModel(new File(['GGUF....'], 'a.gguf'), { worker: fakeWorker });

export async function trainerOf(options: Partial<CreateOptions> = {}): Promise<Trainer> {
  const model = await newModel(SHAPE, TEXT, { worker: fakeWorker });
  return Trainer.create({ model, data: TEXT, steps: 10, seqLen: 16, logEvery: 1, ...options });
}
export async function collect(events: AsyncIterable<TrainerEvent>): Promise<TrainerEvent[]> {
  const all: TrainerEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}
export const stepsOf = (events: TrainerEvent[]): number[] =>
  events.flatMap((event) => (event.type === 'step' ? [event.step] : []));

beforeEach(() => {
  resetFake();
  resetGpu();
  started.length = 0;
});
