/** The worker's reports: models, sessions, checkpoints, and the events of a run. Both sides parse with these parsers. */
import { anything, blob, count, document, flag, floats, listOf, missing, nullable, number, oneOf, optional, record, text, variant } from './parse.js';
import { dataReport } from './data-report.js';
import type { Parsed } from './parse.js';
import { evaluationFields, stepFields, warning } from './generated/reports.js';
import type { evaluation, gpu, profile, score, token } from './generated/reports.js';

export type Finding = Parsed<typeof warning>;

const tensorFields = { name: text, dtype: text, shape: listOf(number) };
const tokenizer = record({ kind: text, eos: listOf(count), hasChatTemplate: flag });

/** An adapter in use: modules with factors, number of trained values, their bytes on the device. */
const adapterInfo = record({ r: count, alpha: number, targets: listOf(text), parameters: count, bytes: count });
export type AdapterInfo = Parsed<typeof adapterInfo>;

/** The files that a run started from. */
export const baseInfo = record({
  name: text,
  format: text,
  files: listOf(record({ name: text, bytes: count, sha256: missing(text), headerSha256: missing(text), piecesSha256: missing(text) })),
  /** Of an adapter's run: number of the base's matrices on the device by their storage types. */
  storage: document,
  /** Of an adapter's run: bytes of the base on the device. */
  bytes: count,
});
export type BaseInfo = Parsed<typeof baseInfo>;

export const modelInfo = record({
  architecture: text,
  parameters: count,
  tensors: listOf(record(tensorFields)),
  config: anything,
  vocabSize: count,
  tokenizer: nullable(tokenizer),
  sourceFormat: text,
  /** The adapter beside it, if it was opened with one. */
  adapter: nullable(adapterInfo),
  /** Warnings about the files. */
  warnings: listOf(warning),
});
export type ModelInfo = Parsed<typeof modelInfo>;

export const estimate = record({
  needBytes: number,
  parts: record({ base: number, weights: number, adapter: number, grads: number, optimizer: number, activations: number }),
});

/** What the core tells of a session. */
const session = {
  completedSteps: count,
  totalSteps: count,
  config: anything,
  model: modelInfo,
  /** What is trained in place of the weights, if anything is. */
  adapter: nullable(adapterInfo),
  /** What the run started from; a fresh model has none. */
  base: nullable(baseInfo),
  dataTokens: count,
  /** What the run learns, and how. */
  data: dataReport,
  gpuBytes: missing(number),
  /** Tensors that APOLLO leaves to AdamW: embeddings and head unless it projects them too, those of one dimension, and those whose shorter side is at most the rank. */
  fallbacks: listOf(text),
  /** Warnings about what a resume dropped or changed. */
  warnings: listOf(warning),
  /** Step after which a decay or an annealing begins, if one is planned or has begun. */
  scheduleStart: missing(count),
  /** The current rate, if it was set by hand. */
  manualLearningRate: missing(number),
};
export const coreSession = record(session);
export const sessionInfo = record({
  ...session,
  run: text,
  /** Name of the GPU. */
  device: text,
  /** The generation that this state was loaded from or last saved as. */
  generation: optional(count),
});
export type SessionInfo = Parsed<typeof sessionInfo>;

export type EvalReport = Parsed<typeof evaluation>;
export type Profile = Parsed<typeof profile>;
export type GpuReport = Parsed<typeof gpu>;
export type SampledToken = Parsed<typeof token>;
export type Score = Parsed<typeof score>;

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

/** Why a file was refused (crate/FORMATS.md, "Refusals"). */
const refusal = record({
  code: text,
  /** How far the file got: `open`, `bind` or `read`. */
  stage: text,
  /** Name of the file. */
  artifact: text,
  /** Tensor, key or shard. */
  subject: missing(text),
  expected: missing(text),
  found: missing(text),
  hint: missing(text),
  byte_offset: missing(number),
});
export type Refusal = Parsed<typeof refusal>;

/** The line that `tabtune inspect --json` prints of one file. */
export const fileReport = record({
  /** Its name, escaped. */
  file: text,
  /** The format it was read as. */
  format: missing(text),
  ok: flag,
  /** Why it was refused. */
  code: missing(text),
  /** `ok`, or where it was refused: `open`, `bind`, `read`. */
  stage: text,
  /** Tensor, key or shard that was refused. */
  subject: missing(text),
  found: missing(text),
  message: missing(text),
  /** What is unusual but allowed. */
  warnings: listOf(record({ code: text, subject: missing(text) })),
  /** Tensor → number of NaN and infinite values; only after reading, only where there are any. */
  non_finite: missing(document),
  tensors: count,
  inventory: listOf(record(tensorFields)),
});
export type FileReport = Parsed<typeof fileReport>;

/** The document `tabtune.receipt.json`, with its own field names: what was written, of what and how, with sums and digests. */
export const receipt = document;
export type Receipt = Parsed<typeof receipt>;

/** A format, and for GGUF a type of its matrices (of a folder, a dtype to ask for), that a model can or cannot leave in. */
const exportChoice = record({
  format: oneOf('safetensors', 'gguf', 'json', 'peft', 'gguf-adapter'),
  type: missing(text),
  ok: flag,
  /** Of the files, as planned. */
  bytes: missing(number),
  /** What is lost on the way. */
  lossy: missing(text),
  /** Only with the files that the model came from, given as `base`. */
  needs: missing(oneOf('base')),
  /** Why it is not possible. */
  reason: missing(text),
});
export type ExportChoice = Parsed<typeof exportChoice>;

const provenance = {
  exports: listOf(exportChoice),
  /** What import, export and a round trip keep, for every form that a model can take. */
  contract: missing(document),
  /** The files that training starts from, with their sums. */
  base: missing(document),
};
export const modelDetails = record({ ...provenance, receipt: missing(receipt) });
export type ModelDetails = Parsed<typeof modelDetails>;

/** One tensor, widened to f32. */
export const namedTensor = record({ ...tensorFields, values: floats });
export type NamedTensor = Parsed<typeof namedTensor>;

const inspected = {
  ...provenance,
  kind: oneOf('model', 'adapter', 'optimizer', 'state', 'checkpoint', 'unknown'),
  tensors: listOf(record(tensorFields)),
  config: anything,
  tokenizer: missing(tokenizer),
  /** Which tensor comes from where. */
  plan: missing(document),
  trainable: record({
    ok: flag,
    reason: missing(text),
    /** GPU bytes of a step, by update rule and precision, with the default settings. */
    options: listOf(record({ optimizer: text, precision: text, bytes: number })),
  }),
  /** Everything that is wrong with the files together; empty if nothing was refused. */
  refusals: listOf(refusal),
  warnings: listOf(warning),
};
/** The core's part of an inspection. */
export const inspection = record(inspected);
/** What a set of files is, and what can be done with it. */
export const inspectReport = record({ ...inspected, files: listOf(fileReport) });
export type InspectReport = Parsed<typeof inspectReport>;

/** Progress of a long call. Totals are known from the start. */
export const progress = record({
  phase: oneOf('download', 'read', 'verify', 'upload', 'compile', 'save', 'export', 'import', 'measure', 'ready'),
  file: optional(text),
  loaded: number,
  total: number,
  fraction: number,
});
export type Progress = Parsed<typeof progress>;
export type OnProgress = (progress: Progress) => void;

/** Why a text ended: a token that ends one, the number of tokens, or the model's context. */
export const sampleEnd = oneOf('stop', 'length', 'context');
export type SampleEnd = Parsed<typeof sampleEnd>;

const historyFields = {
  step: stepFields,
  /** `end`: of samples of earlier versions it is not known. */
  sample: { step: count, prompt: text, text, end: optional(sampleEnd) },
  /** `accuracy`: of evaluations of earlier versions it is not known. */
  eval: { step: count, ...evaluationFields, accuracy: optional(number) },
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
