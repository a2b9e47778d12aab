/** Translates the form to options of a run. */
import { OPTIMIZER_TYPES } from 'tabtune';
import type {
  DriveOptions,
  ModelShape,
  OptimizerOptions,
  ScheduleOptions,
  TrainOptions,
} from 'tabtune';

import { byId, nextRun } from './dom.js';
import { chosenPrompt } from './prompt.js';
import type { Intervals } from './waiting.js';

/** Shape of the model that is trained from random weights: large enough to find words, small enough to do so while one watches. */
const SCRATCH: ModelShape = { hiddenSize: 128, numHiddenLayers: 3, numAttentionHeads: 4 };
/** The same for a software adapter, which is a hundred times slower. */
const SCRATCH_SOFTWARE: ModelShape = { hiddenSize: 64, numHiddenLayers: 2, numAttentionHeads: 2 };
const SOFTWARE_NUMBERS = { 's-steps': 200, 's-batch': 4, 's-length': 48, 's-sample': 20 };

/**
 * The update rules that the page offers; `rate` is the best of the tested rates: with the small model over 200 steps, or for APOLLO and one block at
 * a time in the search of tests/bench/README.md.
 */
const OPTIMIZERS: Record<
  string,
  { label: string; rate: number; options: OptimizerOptions; blocks?: number }
> = {
  adamw: { label: 'AdamW', rate: 0.002, options: { type: 'adamw' } },
  'adamw-blocks': {
    label: 'AdamW, one block at a time',
    rate: 0.002,
    options: { type: 'adamw' },
    blocks: 1,
  },
  adafactor: { label: 'Adafactor', rate: 0.004, options: { type: 'adafactor' } },
  apollo: { label: 'APOLLO', rate: 0.004, options: { type: 'apollo' } },
  'apollo-mini': { label: 'APOLLO-Mini', rate: 0.004, options: { type: 'apollo', mini: true } },
  sgd: { label: 'SGD', rate: 0.5, options: { type: 'sgd' } },
};
// A rule for which no rate was tested yet is offered with the default rate of a run.
for (const type of OPTIMIZER_TYPES)
  OPTIMIZERS[type] ??= { label: type, rate: 0.001, options: { type } };
/** Number of steps until the next block trains. */
const BLOCK_STEPS = 20;
/** Factor of the rate for a trained model, which should change only a little. */
const FINE_TUNING = 1 / 20;
/** Factor of the rate for an adapter, whose factors begin at zero and move further: 2e-4 with AdamW. */
const FACTORS = 1 / 10;

let scratch = SCRATCH;
let suggested = OPTIMIZERS['adamw']?.rate;

/** Returns the name of an update rule by its `type`, which is itself the name of one that the page does not offer. */
export const ruleName = (type: string): string => OPTIMIZERS[type]?.label ?? type;

/** Fills the list of update rules. */
export function offerOptimizers(): void {
  const options = Object.entries(OPTIMIZERS).map(([word, { label }]) => new Option(label, word));
  byId('s-optimizer', HTMLSelectElement).replaceChildren(...options);
}

/** Part of a model that is trained: all weights of a new model or of files, or the low-rank factors of an adapter. */
export type Trained = 'fresh' | 'all' | 'adapter';
const SHARES: Readonly<Record<Trained, number>> = { fresh: 1, all: FINE_TUNING, adapter: FACTORS };

/** Sets the rate that suits the chosen rule and the kind of training, unless another was typed. An adapter is not trained one block at a time. */
export function suggestRate(trained: Trained): void {
  const select = byId('s-optimizer', HTMLSelectElement);
  for (const option of select.options)
    option.disabled = trained === 'adapter' && OPTIMIZERS[option.value]?.blocks !== undefined;
  if (select.selectedOptions[0]?.disabled) select.value = 'adamw';
  const input = byId('s-rate', HTMLInputElement);
  const rate = Number(
    ((OPTIMIZERS[wordOf('s-optimizer')]?.rate ?? 0) * SHARES[trained]).toPrecision(3),
  );
  if (input.valueAsNumber === suggested) input.valueAsNumber = rate;
  suggested = rate;
}

const typed = new Set<string>();

/** Remembers the fields that the user types into: the browser may still be looking for a GPU, and its answer must not overwrite them. */
export function rememberTyping(): void {
  for (const part of nextRun())
    part.addEventListener('input', ({ target }) => {
      if (target instanceof HTMLInputElement) typed.add(target.id);
    });
}

/** Applies the defaults for a software adapter, except where a number was typed, or if all numbers were restored. */
export function useSoftwareDefaults(numbers: boolean): void {
  scratch = SCRATCH_SOFTWARE;
  if (!numbers) return;
  for (const [id, value] of Object.entries(SOFTWARE_NUMBERS))
    if (!typed.has(id)) byId(id, HTMLInputElement).valueAsNumber = value;
}

/** Sequence length of texts while rows have their own. */
let textLength: number | undefined;

/** Returns whether the sequence length follows the data, because no one typed one. */
export const lengthFollows = (): boolean => !typed.has('s-length');

/** Sets the sequence length that rows propose, or for a text the previous one, unless another was typed. */
export function proposeLength(rows: number | undefined): void {
  if (!lengthFollows()) return;
  const input = byId('s-length', HTMLInputElement);
  textLength ??= input.valueAsNumber;
  input.valueAsNumber = rows ?? textLength;
  if (rows === undefined) textLength = undefined;
}

export const scratchShape = (): ModelShape => ({ ...scratch, maxPositionEmbeddings: contextOf() });
/** Maximum sequence length that rows propose. */
const SHORTEST_CONTEXT = 1024;
/** Number of tokens of one sample during a run. */
const SAMPLE_TOKENS = 180;

const numberOf = (id: string): number => byId(id, HTMLInputElement).valueAsNumber;
const wordOf = (id: string): string => byId(id, HTMLSelectElement).value;

export const contextOf = (): number => Math.max(SHORTEST_CONTEXT, numberOf('s-length') || 0);

/**
 * Returns the update rule. If only a few blocks are trained at a time, a new model trains its table, norm and head in every step, because they have
 * learned nothing yet.
 */
function optimizerOf(
  word: string,
  trained: Trained,
): Pick<TrainOptions, 'optimizer' | 'blockCoordinate'> {
  const offered = OPTIMIZERS[word];
  if (!offered) throw new Error(`the page offers no optimizer ${word}`);
  const { options, blocks } = offered;
  const fresh = trained === 'fresh';
  return {
    optimizer: { ...options, ...(trained === 'adapter' && { weightDecay: 0 }) },
    ...(blocks !== undefined && {
      blockCoordinate: {
        blocks,
        interval: BLOCK_STEPS,
        embedding: fresh,
        norm: fresh,
        head: fresh,
      },
    }),
  };
}

/** Returns sensible phases of each schedule for a run of this length. */
function scheduleOf(word: string, steps: number, peak: number): ScheduleOptions {
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

export function trainOptions(trained: Trained): TrainOptions & { steps: number; seqLen: number } {
  const steps = numberOf('s-steps');
  const learningRate = numberOf('s-rate');
  return {
    steps,
    learningRate,
    batchSize: numberOf('s-batch'),
    seqLen: numberOf('s-length'),
    seed: numberOf('s-seed'),
    precision: wordOf('s-precision') === 'bf16' ? 'bf16' : 'f32',
    ...optimizerOf(wordOf('s-optimizer'), trained),
    lrScheduler: scheduleOf(wordOf('s-schedule'), steps, learningRate),
    validationFraction: 0.05,
    ...(trained === 'adapter' && adapterOf()),
  };
}

export function driveOptions(): DriveOptions & Intervals {
  const steps = numberOf('s-steps');
  return {
    logEvery: 4,
    evalEvery: Math.max(10, Math.round(steps / 10)),
    evalBatches: 4,
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
