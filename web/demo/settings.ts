/** Translates the form to options of a run. */
import type { DriveOptions, ModelShape, ScheduleOptions, TrainOptions } from 'tabtune';

import { withAdvanced } from './advanced.js';
import { byId } from './dom.js';
import { isTyped } from './numbers.js';
import { optimizerOf } from './optimizers.js';
import type { Trained } from './optimizers.js';
import { chosenPrompt } from './prompt.js';
import { evaluation, isSoftware } from './suggestions.js';
import type { Intervals } from './waiting.js';

/** Shape of the model that is trained from random weights: large enough to find words, small enough to do so while one watches. */
const SCRATCH: ModelShape = { hiddenSize: 128, numHiddenLayers: 3, numAttentionHeads: 4 };
/** The same for a software adapter, which is a hundred times slower. */
const SCRATCH_SOFTWARE: ModelShape = { hiddenSize: 64, numHiddenLayers: 2, numAttentionHeads: 2 };

export const scratchShape = (): ModelShape => ({
  ...(isSoftware() ? SCRATCH_SOFTWARE : SCRATCH),
  maxPositionEmbeddings: contextOf(),
});
/** Maximum sequence length that rows propose. */
const SHORTEST_CONTEXT = 1024;
/** Number of tokens of one sample during a run. */
const SAMPLE_TOKENS = 180;

const numberOf = (id: string): number => byId(id, HTMLInputElement).valueAsNumber;
const wordOf = (id: string): string => byId(id, HTMLSelectElement).value;
const precisionOf = (): 'bf16' | 'f32' => (wordOf('s-precision') === 'bf16' ? 'bf16' : 'f32');

export const contextOf = (): number => Math.max(SHORTEST_CONTEXT, numberOf('s-length') || 0);

/** Returns sensible phases of each schedule for a run of this length. */
function scheduleOf(trained: Trained, steps: number, peak: number): ScheduleOptions {
  const word = wordOf('s-schedule');
  // As the package chooses it.
  if (trained !== 'fresh' && word === 'cosine') {
    const tenth = Math.min(Math.ceil(steps / 10), steps - 1);
    return { type: 'cosine', warmupFromZero: false, warmupSteps: tenth };
  }
  const warmupSteps = Math.min(100, Math.round(steps / 20));
  const fifth = Math.max(1, Math.round(steps / 5));
  switch (word) {
    case 'cosine':
      return { type: 'cosine', warmupSteps, minLearningRate: peak / 10 };
    case 'linear':
    case 'constant':
      return { type: word, warmupSteps };
    case 'wsd':
      return {
        type: 'wsd',
        warmupSteps,
        decaySteps: fifth,
        decayStartStep: Math.max(warmupSteps, steps - fifth),
        decayType: 'one_minus_sqrt',
        minLearningRate: peak / 10,
      };
    case 'infinite': {
      const cooldownSteps = Math.max(1, Math.round(steps / 4));
      const annealingStartStep = Math.max(warmupSteps + cooldownSteps, steps - fifth);
      return {
        type: 'infinite',
        warmupSteps,
        cooldownSteps,
        constantLearningRate: peak / 2,
        annealingSteps: fifth,
        annealingStartStep,
        minLearningRate: peak / 20,
      };
    }
    default:
      throw new Error(`the page offers no schedule ${word}`);
  }
}

/** Returns the settings of an adapter in which every matrix of the blocks has factors. */
const adapterOf = (): Pick<TrainOptions, 'adapter'> => ({
  adapter: { r: numberOf('s-rank'), alpha: numberOf('s-alpha'), targetModules: 'all-linear' },
});

/** Options by which the data are inspected: those of an opened model have only the numbers that were typed, and the package chooses the others. */
export function lookOptions(trained: Trained): TrainOptions {
  if (trained === 'fresh') return trainOptions(trained);
  return withAdvanced({
    ...(isTyped('s-steps') && { steps: numberOf('s-steps') }),
    ...(isTyped('s-batch') && { batchSize: numberOf('s-batch') }),
    ...(isTyped('s-length') && { seqLen: numberOf('s-length') }),
    ...(isTyped('s-precision') && { precision: precisionOf() }),
    seed: numberOf('s-seed'),
    ...optimizerOf(trained),
    ...(trained === 'adapter' && adapterOf()),
  });
}

type FormOptions = TrainOptions & { steps: number; seqLen: number };

/** Returns the options of the form without advanced settings. */
export function formOptions(trained: Trained): FormOptions {
  const steps = numberOf('s-steps');
  const learningRate = numberOf('s-rate');
  return {
    steps,
    learningRate,
    batchSize: numberOf('s-batch'),
    seqLen: numberOf('s-length'),
    seed: numberOf('s-seed'),
    precision: precisionOf(),
    ...optimizerOf(trained),
    lrScheduler: scheduleOf(trained, steps, learningRate),
    validationFraction: evaluation(trained, steps).share,
    ...(trained === 'adapter' && adapterOf()),
  };
}

export const trainOptions = (trained: Trained): FormOptions => withAdvanced(formOptions(trained));

export function driveOptions(trained: Trained): DriveOptions & Intervals {
  const { every, batches } = evaluation(trained, numberOf('s-steps'));
  return {
    logEvery: 4,
    evalEvery: every,
    evalBatches: batches,
    sampleEvery: numberOf('s-sample'),
    saveEvery: numberOf('s-save'),
    samplePrompt: chosenPrompt(),
    sample: { ...sampling(), maxTokens: SAMPLE_TOKENS },
  };
}

export const sampling = (): { temperature: number; seed: number } => ({
  temperature: numberOf('temperature') || 0,
  seed: numberOf('s-seed'),
});
