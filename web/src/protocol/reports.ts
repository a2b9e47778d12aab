/** The worker's reports: models, sessions, checkpoints, and the events of a run. Both sides parse with these parsers. */
import { anything, blob, count, flag, listOf, nullable, number, oneOf, optional, record, text, variant } from './parse.js';
import type { Parsed } from './parse.js';

/** A warning: its dotted word, its subject, a sentence. */
const finding = record({ code: text, subject: optional(text), message: text });
export type Finding = Parsed<typeof finding>;

export const modelInfo = record({
  architecture: text,
  parameters: count,
  tensors: listOf(record({ name: text, dtype: text, shape: listOf(count) })),
  config: anything,
  vocabSize: count,
  tokenizer: nullable(record({ kind: text, eos: listOf(count), hasChatTemplate: flag })),
  sourceFormat: text,
  /** Warnings about the files. */
  warnings: listOf(finding),
});
export type ModelInfo = Parsed<typeof modelInfo>;

export const estimate = record({
  needBytes: number,
  parts: record({ weights: number, grads: number, optimizer: number, activations: number }),
});

export const sessionInfo = record({
  run: text,
  adapter: text,
  completedSteps: count,
  totalSteps: count,
  config: anything,
  model: modelInfo,
  dataTokens: count,
  gpuBytes: optional(number),
  /** Tensors that APOLLO leaves to AdamW: those of one dimension, and those whose shorter side is at most the rank. */
  fallbacks: listOf(text),
  /** Warnings about what a resume dropped or changed. */
  warnings: listOf(finding),
  /** Step after which a decay or an annealing begins, if one is planned or has begun. */
  scheduleStart: optional(count),
  /** The current rate, if it was set by hand. */
  manualLearningRate: optional(number),
  /** The generation that this state was loaded from or last saved as. */
  generation: optional(count),
});
export type SessionInfo = Parsed<typeof sessionInfo>;

export const evalReport = record({ loss: number, perplexity: number, tokens: count });
export type EvalReport = Parsed<typeof evalReport>;

/** Where the GPU's time of a step goes: means over the steps that were timed. */
export const profile = record({
  /** Steps that were timed. */
  steps: count,
  /** The device's timestamps, or the host's clock around each kernel. */
  timing: oneOf('device', 'system'),
  /** Milliseconds of all kernels in a step. */
  ms: number,
  /** Launches of tabtune's own kernels in a step. */
  dispatches: number,
  /** Number of launches in all steps that were shorter than the resolution of the GPU's clock, and so have no time. */
  unmeasured: count,
  /** Slowest first; a kernel that Burn generated is `Burn: ` and its type. */
  kernels: listOf(record({ kernel: text, launches: number, ms: number, share: number })),
});
export type Profile = Parsed<typeof profile>;

export const token = record({
  id: count,
  text,
  logprob: number,
  top: listOf(record({ id: count, text, prob: number })),
});
export type SampledToken = Parsed<typeof token>;

export const checkpointInfo = record({
  run: text,
  generation: count,
  step: count,
  totalSteps: count,
  loss: optional(number),
  validationLoss: optional(number),
  bytes: count,
  savedAt: number,
  label: text,
  dataName: text,
  hasData: flag,
  /** Marked: retention never drops it. */
  kept: flag,
  /** The database, or the second home in the origin's private files. */
  home: oneOf('indexeddb', 'opfs'),
  /** Why it cannot be resumed, as a dotted word. */
  fault: optional(text),
});
export type CheckpointInfo = Parsed<typeof checkpointInfo>;

export const namedFile = record({ name: text, blob });
export type NamedFile = Parsed<typeof namedFile>;

/** The core's report of one file. */
export const fileReport = record({ name: text, report: anything });
export type FileReport = Parsed<typeof fileReport>;

/** Progress of a long call. Totals are known from the start. */
export const progress = record({
  phase: oneOf('download', 'read', 'verify', 'upload', 'compile', 'save', 'export', 'import', 'ready'),
  file: optional(text),
  loaded: number,
  total: number,
  fraction: number,
});
export type Progress = Parsed<typeof progress>;
export type OnProgress = (progress: Progress) => void;

const historyFields = {
  step: { step: count, loss: number, gradNorm: number, learningRate: number, tokens: count, secs: number },
  sample: { step: count, prompt: text, text },
  eval: { step: count, loss: number, perplexity: number, tokens: count },
};
/** The history that is kept with a run's state: steps, evaluations and samples. */
export const historyEntry = variant('type', historyFields);
export type HistoryEntry = Parsed<typeof historyEntry>;

/** What `run` yields and the trainer dispatches. */
export const trainerEvent = variant('type', {
  ...historyFields,
  checkpoint: { step: count, generation: count, bytes: count, secs: number },
  /** `code` is a dotted word. */
  warning: { step: count, code: text, message: text },
  /** `recovering` has the step from which the run continues. */
  state: { state: oneOf('ready', 'running', 'paused', 'stopped', 'done', 'recovering', 'failed'), step: count },
});
export type TrainerEvent = Parsed<typeof trainerEvent>;
export type TrainerState = Extract<TrainerEvent, { type: 'state' }>['state'];
