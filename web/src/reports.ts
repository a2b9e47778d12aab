/** What the worker reports: models, sessions, checkpoints, and the events of a run. Both sides parse with these shapes. */
import { anything, blob, count, flag, listOf, nullable, number, oneOf, optional, record, text, variant } from './shape.js';
import type { Of } from './shape.js';

/** What was noticed and does not refuse: its dotted word, what it is about, a sentence. */
const finding = record({ code: text, subject: optional(text), message: text });
export type Finding = Of<typeof finding>;

export const modelInfo = record({
  architecture: text,
  parameters: count,
  tensors: listOf(record({ name: text, dtype: text, shape: listOf(count) })),
  config: anything,
  vocabSize: count,
  tokenizer: nullable(record({ kind: text, eos: listOf(count), hasChatTemplate: flag })),
  sourceFormat: text,
  /** Findings of the files that did not refuse them. */
  warnings: listOf(finding),
});
export type ModelInfo = Of<typeof modelInfo>;

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
  /** What a resume dropped or took otherwise. */
  warnings: listOf(finding),
  /** Step after which a decay or an annealing begins, if one is planned or has begun. */
  scheduleStart: optional(count),
  /** The rate set by hand that is in force. */
  manualLearningRate: optional(number),
  /** The generation that this state was loaded from or last saved as. */
  generation: optional(count),
});
export type SessionInfo = Of<typeof sessionInfo>;

export const evalReport = record({ loss: number, perplexity: number, tokens: count });
export type EvalReport = Of<typeof evalReport>;

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
  /** Launches in all steps without a time: shorter than the tick of the GPU's clock. */
  unmeasured: count,
  /** Slowest first; a kernel that Burn generated is `Burn: ` and its type. */
  kernels: listOf(record({ kernel: text, launches: number, ms: number, share: number })),
});
export type Profile = Of<typeof profile>;

export const token = record({
  id: count,
  text,
  logprob: number,
  top: listOf(record({ id: count, text, prob: number })),
});
export type SampledToken = Of<typeof token>;

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
export type CheckpointInfo = Of<typeof checkpointInfo>;

export const namedFile = record({ name: text, blob });
export type NamedFile = Of<typeof namedFile>;

/** The core's report of one file. */
export const fileReport = record({ name: text, report: anything });
export type FileReport = Of<typeof fileReport>;

const progressFields = {
  phase: oneOf('download', 'read', 'verify', 'upload', 'compile', 'save', 'export', 'import', 'ready'),
  file: optional(text),
  loaded: number,
  total: number,
  fraction: number,
};
/** How far a long call has got. Totals are known first. */
export const progress = record(progressFields);
export type Progress = Of<typeof progress>;

const historyFields = {
  step: { step: count, loss: number, gradNorm: number, learningRate: number, tokens: count, secs: number },
  sample: { step: count, prompt: text, text },
  eval: { step: count, loss: number, perplexity: number, tokens: count },
};
/** What is kept of a run beside its state: its steps, evaluations and samples. */
export const historyEntry = variant('type', historyFields);
export type HistoryEntry = Of<typeof historyEntry>;

/** What `run` yields and the trainer dispatches. */
export const trainerEvent = variant('type', {
  ...historyFields,
  checkpoint: { step: count, generation: count, bytes: count, secs: number },
  /** `code` is a dotted word. */
  warning: { step: count, code: text, message: text },
  /** `recovering` names the step that the run goes on from. */
  state: { state: oneOf('ready', 'running', 'paused', 'stopped', 'done', 'recovering', 'failed'), step: count },
  progress: progressFields,
});
export type TrainerEvent = Of<typeof trainerEvent>;
export type TrainerState = Extract<TrainerEvent, { type: 'state' }>['state'];
