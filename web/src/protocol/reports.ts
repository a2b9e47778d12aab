/** The worker's reports: models, sessions, checkpoints, and the events of a run. Both sides parse with these parsers. */
import { anything, blob, count, flag, listOf, nullable, number, oneOf, optional, record, text, variant } from './parse.js';
import type { Parsed } from './parse.js';
import { evaluationFields, stepFields, warning } from './generated/reports.js';
import type { evaluation, profile, token } from './generated/reports.js';

export type Finding = Parsed<typeof warning>;

export const modelInfo = record({
  architecture: text,
  parameters: count,
  tensors: listOf(record({ name: text, dtype: text, shape: listOf(count) })),
  config: anything,
  vocabSize: count,
  tokenizer: nullable(record({ kind: text, eos: listOf(count), hasChatTemplate: flag })),
  sourceFormat: text,
  /** Warnings about the files. */
  warnings: listOf(warning),
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
  warnings: listOf(warning),
  /** Step after which a decay or an annealing begins, if one is planned or has begun. */
  scheduleStart: optional(count),
  /** The current rate, if it was set by hand. */
  manualLearningRate: optional(number),
  /** The generation that this state was loaded from or last saved as. */
  generation: optional(count),
});
export type SessionInfo = Parsed<typeof sessionInfo>;

export type EvalReport = Parsed<typeof evaluation>;
export type Profile = Parsed<typeof profile>;
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
  step: stepFields,
  sample: { step: count, prompt: text, text },
  eval: { step: count, ...evaluationFields },
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
