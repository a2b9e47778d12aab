/** Options of a run: validated here, translated to the core's `TrainConfig` JSON, validated again there. */
import { among, belowOne, byType, naturalNumber, negative, notNegative, objectOf, positive, positiveInteger, snake, startStep, together, translate, truth, twoOrMore, upToOne, words } from './checks.js';
import type { Check, Checks } from './checks.js';
import { badOption } from '../protocol/errors.js';
import type { Driver } from '../protocol/protocol.js';
import type { GroupOptions, OptimizerOptions, ScheduleOptions } from './rule-options.js';

/** What a step computes; each option's default ends its line. */
export interface TrainOptions {
  /** Optimizer steps of the whole run. 100 */
  steps?: number;
  /** Sequences of one micro-batch. 4 */
  batchSize?: number;
  /** Tokens of one sequence. 128 */
  seqLen?: number;
  /** Micro-batches per step. 1 */
  gradientAccumulationSteps?: number;
  /** Peak learning rate. 1e-3 */
  learningRate?: number;
  /** Steps of linear warmup. 0 */
  warmupSteps?: number;
  /** Learning rate over the steps. `{ type: 'constant' }` */
  lrScheduler?: ScheduleOptions;
  /** Bound of the global gradient norm; 0 is no clipping. 1 */
  maxGradNorm?: number;
  /** Update rule. `{ type: 'adamw' }` */
  optimizer?: OptimizerOptions;
  /** Parameter groups; none: one group of everything. 'no_decay': norms, biases and embeddings do not decay. */
  groups?: GroupOptions[] | 'no_decay';
  /** Storage of matrices and moments; arithmetic is f32. 'f32' */
  precision?: 'bf16' | 'f32';
  /** Recompute blocks in the backward pass: less memory, more time. false */
  gradientCheckpointing?: boolean;
  /** Update each block as soon as its gradients are complete: least memory. Needs one micro-batch a step and `maxGradNorm: 0`. false */
  gradientRelease?: boolean;
  /** false; true lets a token see only its own document: a text's documents end with the tokenizer's end tokens (eos) */
  documentMask?: boolean;
  /** 'sequential': as it lies in the data, from its first token, in every epoch. 'shuffled' */
  dataOrder?: 'shuffled' | 'sequential';
  /** Share of the text kept for evaluation, from its end. 0 */
  validationFraction?: number;
  /** Seed of everything random. 0 */
  seed?: number;
}

/** How the loop is driven; this changes no step. */
export interface DriveOptions {
  /** Number of steps per message. 8 */
  logEvery?: number;
  /** Steps between evaluations; 0 is never. 0 */
  evalEvery?: number;
  /** Batches of one evaluation; 0 is all. 0 */
  evalBatches?: number;
  /** Save by itself: before the first step, by time and steps, when the page is hidden, at the end. true */
  autosave?: boolean;
  /** Seconds between checkpoints, and at least ten times what the last one took; 0 is never. 120 */
  saveEverySecs?: number;
  /** Steps between checkpoints; 0 is never. 0 */
  saveEvery?: number;
  /** Checkpoints kept of the run, at least 2, in addition to those that are always kept. 4 */
  saveTotalLimit?: number;
  /** Steps between samples; 0 is never. 0 */
  sampleEvery?: number;
  /** Prompt of those samples. '' */
  samplePrompt?: string;
  /** Their other options. */
  sample?: SampleOptions;
  /** A step whose loss or gradient is not finite changes nothing; then the run stops or continues. 'stop' */
  onNonFinite?: 'stop' | 'skip';
}

export interface SampleOptions {
  /** 100 */
  maxTokens?: number;
  /** 0 is greedy. 0.8 */
  temperature?: number;
  /** Only the k likeliest tokens. */
  topK?: number;
  /** Only the likeliest tokens of this total probability. */
  topP?: number;
  /** 0 */
  seed?: number;
  /** Alternatives reported per token. 0 */
  topLogprobs?: number;
}

const DEFAULT_STEPS = 100;
const sgd: Checks = { momentum: belowOne, nesterov: truth, weightDecay: notNegative, stochasticRounding: truth };
const adamw: Checks = { beta1: belowOne, beta2: belowOne, eps: positive, weightDecay: notNegative, stochasticRounding: truth };
const adafactor: Checks = { decayRate: negative, beta2Cap: belowOne, clipThreshold: positive, eps1: positive, eps2: positive, weightDecay: notNegative, relativeStep: truth, stochasticRounding: truth };
const apollo: Checks = { ...adamw, rank: positiveInteger, mini: truth, scale: positive, scaleFront: truth, updateSteps: positiveInteger, projector: among('normal', 'orthogonal') };
const optimizer = byType({ adamw, adafactor, apollo, sgd });
// Only the core knows which of the keys fit the run's optimizer.
const groupOptimizer = byType({ adamw, adafactor, apollo, sgd }, { ...adafactor, ...apollo, ...sgd });
const group: Checks = { pattern: words, optimizer: groupOptimizer, weightDecay: notNegative, learningRateScale: positive, frozen: truth };

const warmup: Checks = { warmupSteps: naturalNumber, warmupFromZero: truth };
const falling: Checks = { ...warmup, totalSteps: positiveInteger, minLearningRate: notNegative };
const wsd: Checks = { ...warmup, decaySteps: positiveInteger, decayStartStep: startStep, startDecay: truth, decayType: among('harmonic', 'rsqrt', 'exponential', 'linear', 'one_minus_sqrt'), minLearningRate: notNegative };
const infinite: Checks = { ...warmup, cooldownSteps: naturalNumber, constantLearningRate: positive, annealingSteps: positiveInteger, tau: positive, annealingStartStep: startStep, startAnnealing: truth, annealingType: among('exponential', 'harmonic', 'rsqrt'), minLearningRate: notNegative };
const scheduler = byType({ constant: warmup, cosine: falling, linear: falling, wsd, infinite });

const groups: Check = (value, path) => {
  if (value === 'no_decay') return value;
  if (!Array.isArray(value)) throw badOption(path, "a list of groups, or 'no_decay'", value);
  const list: unknown[] = [];
  together(value.map((given: unknown, index) => () => {
    const at = `${path}[${index}]`;
    list.push(translate(objectOf(given, at), group, at));
  }));
  return list;
};

const sampling: Checks = { maxTokens: positiveInteger, temperature: notNegative, topK: positiveInteger, topP: upToOne, seed: naturalNumber, topLogprobs: naturalNumber };

const TRAIN: Checks = {
  steps: positiveInteger,
  batchSize: positiveInteger,
  seqLen: positiveInteger,
  gradientAccumulationSteps: positiveInteger,
  learningRate: positive,
  warmupSteps: naturalNumber,
  lrScheduler: scheduler,
  maxGradNorm: notNegative,
  optimizer,
  groups,
  precision: among('bf16', 'f32'),
  gradientCheckpointing: truth,
  gradientRelease: truth,
  documentMask: truth,
  dataOrder: among('shuffled', 'sequential'),
  validationFraction: belowOne,
  seed: naturalNumber,
};
const DRIVE: Checks = {
  logEvery: positiveInteger,
  evalEvery: naturalNumber,
  evalBatches: naturalNumber,
  autosave: truth,
  saveEverySecs: notNegative,
  saveEvery: naturalNumber,
  saveTotalLimit: twoOrMore,
  sampleEvery: naturalNumber,
  samplePrompt: words,
  sample: (value, path) => translate(objectOf(value, path), sampling, path),
  onNonFinite: among('stop', 'skip'),
};

/** @internal `GenerateConfig` as JSON. */
export function sampleJson(options: SampleOptions): string {
  return JSON.stringify({ max_tokens: 100, temperature: 0.8, ...translate(options, sampling, '') });
}

/** The given options under Rust's names; the warmup inside the schedule. */
function settings(train: object): { rest: Record<string, unknown>; schedule: Record<string, unknown> } {
  const { lr_scheduler: chosen, warmup_steps: warmupSteps, ...rest } = translate(train, TRAIN, '');
  const schedule: Record<string, unknown> = { ...objectOf(chosen ?? {}, 'lrScheduler') };
  if (warmupSteps !== undefined) {
    if (schedule['warmup_steps'] !== undefined) throw badOption('warmupSteps', 'it once, here or in lrScheduler', warmupSteps);
    schedule['warmup_steps'] = warmupSteps;
  }
  return { rest, schedule };
}

/** @internal What a resume changes: keys of `TrainConfig` as JSON, and Rust's names of those that may differ from the checkpoint. */
export function resumeSettings(changes: TrainOptions, override: readonly string[]): { config: string; override: string[] } {
  if (!Array.isArray(override)) throw badOption('override', 'a list of option names', override);
  const { rest, schedule } = settings(objectOf(changes, 'settings'));
  const config = Object.keys(schedule).length > 0 ? { ...rest, schedule } : rest;
  const core = (name: unknown, index: number): string =>
    snake(String(words(name, `override[${index}]`))).replace(/^lr_scheduler\b/, 'schedule').replace(/^warmup_steps$/, 'schedule.warmup_steps');
  return { config: JSON.stringify(config), override: override.map(core) };
}

/** @internal `TrainConfig` as JSON, and the driver's settings. Unknown keys are BAD_OPTION. */
export function trainSettings(given: TrainOptions & DriveOptions): { config: string; driver: Driver } {
  // Checked as a whole first, so that the faults of both halves are reported together.
  translate(given, { ...TRAIN, ...DRIVE }, '');
  const train: object = Object.fromEntries(Object.entries(given).filter(([key]) => !Object.hasOwn(DRIVE, key)));
  const { rest, schedule } = settings(train);
  const config = { steps: DEFAULT_STEPS, ...rest };
  schedule['type'] ??= 'constant';
  if (schedule['type'] === 'cosine' || schedule['type'] === 'linear') schedule['total_steps'] ??= config.steps;
  const { logEvery = 8, evalEvery = 0, evalBatches = 0, autosave = true, saveEverySecs = 120, saveEvery = 0, saveTotalLimit = 4, sampleEvery = 0, samplePrompt = '', sample = {}, onNonFinite = 'stop' } = given;
  if (!autosave && saveEvery > 0) throw badOption('saveEvery', '0 with autosave: false', saveEvery);
  const driver = { logEvery, evalEvery, evalBatches, autosave, saveEverySecs, saveEvery, saveTotalLimit, sampleEvery, samplePrompt, sample: sampleJson(sample), onNonFinite };
  return { config: JSON.stringify({ ...config, schedule }), driver };
}
