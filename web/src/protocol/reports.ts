/** The worker's reports: models, sessions, checkpoints, and the events of a run. Both sides parse them with these parsers. */
import { EXPORT_WORDS } from './generated/exports.js';
import {
  anything,
  blob,
  count,
  document,
  flag,
  floats,
  listOf,
  missing,
  nullable,
  number,
  oneOf,
  optional,
  record,
  text,
  variant,
} from './parse.js';
import { dataReport } from './data-report.js';
import type { Parsed } from './parse.js';
import { evaluationFields, stepFields, warning } from './generated/reports.js';
import type { evaluation, gpu, profile, score, token } from './generated/reports.js';

/** A warning about files or a run: a dotted code and a message. */
export type Finding = Parsed<typeof warning>;

const tensorFields = { name: text, dtype: text, shape: listOf(number) };
const tokenizer = record({ kind: text, eos: listOf(count), hasChatTemplate: flag });

/** An adapter in use: modules with factors, number of trained values, their bytes on the device. */
const adapterInfo = record({
  r: count,
  alpha: number,
  targets: listOf(text),
  parameters: count,
  bytes: count,
});
export type AdapterInfo = Parsed<typeof adapterInfo>;

/** Files that a run started from. */
export const baseInfo = record({
  name: text,
  format: text,
  files: listOf(
    record({
      name: text,
      bytes: count,
      sha256: missing(text),
      headerSha256: missing(text),
      piecesSha256: missing(text),
    }),
  ),
  /** For an adapter run: number of the base's matrices on the device, by storage type. */
  storage: document,
  /** For an adapter run: number of bytes of the base on the device. */
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
  /** The separate adapter of the model, if it was opened with one. */
  adapter: nullable(adapterInfo),
  /** Warnings about the files. */
  warnings: listOf(warning),
});
export type ModelInfo = Parsed<typeof modelInfo>;

export const estimate = record({
  needBytes: number,
  parts: record({
    base: number,
    weights: number,
    adapter: number,
    grads: number,
    optimizer: number,
    activations: number,
  }),
});

/** The core's description of a session. */
const session = {
  completedSteps: count,
  totalSteps: count,
  config: anything,
  model: modelInfo,
  /** The adapter that is trained in place of the weights, if there is one. */
  adapter: nullable(adapterInfo),
  /** Files that the run started from; a new model has none. */
  base: nullable(baseInfo),
  dataTokens: count,
  /** Report on the training data and how they are learned. */
  data: dataReport,
  gpuBytes: missing(number),
  /** Tensors that APOLLO leaves to AdamW: embeddings and head unless also projected, vectors, and those with a shorter side of at most the rank. */
  fallbacks: listOf(text),
  /** Warnings about what a resume dropped or changed. */
  warnings: listOf(warning),
  /** Step after which a decay or an annealing begins, if one is planned or has begun. */
  scheduleStart: missing(count),
  /** Current learning rate, if it was set manually. */
  manualLearningRate: missing(number),
};
export const coreSession = record(session);
export const sessionInfo = record({
  ...session,
  run: text,
  /** Name of the GPU. */
  device: text,
  /** Generation that this state was loaded from or last saved as. */
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
  /** True if the checkpoint is marked, so that retention never drops it. */
  kept: flag,
  /** Storage location: the database, or the alternative in the origin's private file system. */
  home: oneOf('indexeddb', 'opfs'),
  /** Reason why it cannot be resumed, as a dotted code. */
  fault: optional(text),
});
export type CheckpointInfo = Parsed<typeof checkpointInfo>;

export const namedFile = record({ name: text, blob });
export type NamedFile = Parsed<typeof namedFile>;

/** Reason why a file was refused (crate/FORMATS.md, "Refusals"). */
const refusal = record({
  code: text,
  /** Stage at which the file was refused: `open`, `bind` or `read`. */
  stage: text,
  /** Name of the file. */
  artifact: text,
  /** Tensor, key or shard at fault. */
  subject: missing(text),
  expected: missing(text),
  found: missing(text),
  hint: missing(text),
  byte_offset: missing(number),
  /** Sentence of the refusal; only the inspection of files gives it here. */
  message: optional(text),
});
export type Refusal = Parsed<typeof refusal>;

/** The line that `tabtune inspect --json` prints for one file. */
export const fileReport = record({
  /** Escaped name of the file. */
  file: text,
  /** Format as which the file was read. */
  format: missing(text),
  ok: flag,
  /** Code of the reason why the file was refused. */
  code: missing(text),
  /** `ok`, or the stage at which the file was refused: `open`, `bind`, `read`. */
  stage: text,
  /** Tensor, key or shard that was refused. */
  subject: missing(text),
  found: missing(text),
  message: missing(text),
  /** Unusual but permitted properties of the file. */
  warnings: listOf(record({ code: text, subject: missing(text) })),
  /** Number of NaN and infinite values by tensor; present only if all bytes were read, and only for tensors that have some. */
  non_finite: missing(document),
  tensors: count,
  inventory: listOf(record(tensorFields)),
});
export type FileReport = Parsed<typeof fileReport>;

/** The document `tabtune.receipt.json`, with its own field names: the files written, their source and method, with checksums and digests. */
export const receipt = document;
export type Receipt = Parsed<typeof receipt>;

/** A format of export and whether the model supports it; `type` is a type of the matrices for GGUF, or a dtype to request for a folder. */
const exportChoice = record({
  format: oneOf(...EXPORT_WORDS),
  type: missing(text),
  ok: flag,
  /** Planned size of the files in bytes. */
  bytes: missing(number),
  /** Information that the export loses. */
  lossy: missing(text),
  /** `base` if the export also needs the files that the model came from, given as that option. */
  needs: missing(oneOf('base')),
  /** Reason why the export is not possible. */
  reason: missing(text),
});
export type ExportChoice = Parsed<typeof exportChoice>;

const provenance = {
  exports: listOf(exportChoice),
  /** Parts of the model that import, export and a round trip preserve, for every format that a model can take. */
  contract: missing(document),
  /** Files that training starts from, with their checksums. */
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
  /** Mapping of each tensor to its source. */
  plan: missing(document),
  trainable: record({
    ok: flag,
    reason: missing(text),
    /** GPU bytes needed by a step, by update rule and precision, with the default settings. */
    options: listOf(record({ optimizer: text, precision: text, bytes: number })),
  }),
  /** All faults of the files taken together; empty if nothing was refused. */
  refusals: listOf(refusal),
  warnings: listOf(warning),
};
/** The core's part of an inspection. */
export const inspection = record(inspected);
/** Result of an inspection: what the files form together, and what can be done with them. */
export const inspectReport = record({ ...inspected, files: listOf(fileReport) });
export type InspectReport = Parsed<typeof inspectReport>;

/** Progress of a long call. Totals are known from the start. */
export const progress = record({
  phase: oneOf(
    'download',
    'read',
    'verify',
    'upload',
    'compile',
    'save',
    'export',
    'import',
    'measure',
    'ready',
  ),
  file: optional(text),
  loaded: number,
  total: number,
  fraction: number,
});
export type Progress = Parsed<typeof progress>;
export type OnProgress = (progress: Progress) => void;

/** Reason why a text ended: a token that ends one, the number of tokens, or the model's context. */
export const sampleEnd = oneOf('stop', 'length', 'context');
export type SampleEnd = Parsed<typeof sampleEnd>;

const historyFields = {
  step: stepFields,
  sample: { step: count, prompt: text, text, end: sampleEnd },
  eval: { step: count, ...evaluationFields },
};
/** History stored with a run's state: steps, evaluations and samples. */
export const historyEntry = variant('type', historyFields);
export type HistoryEntry = Parsed<typeof historyEntry>;

/** Events that `run` yields and the trainer dispatches. */
export const trainerEvent = variant('type', {
  ...historyFields,
  checkpoint: { step: count, generation: count, bytes: count, secs: number },
  /** `code` is a dotted code. */
  warning: { step: count, code: text, message: text },
  /** With `recovering`, `step` is the step from which the run continues. */
  state: {
    state: oneOf('ready', 'running', 'paused', 'stopped', 'done', 'recovering', 'failed'),
    step: count,
  },
});
export type TrainerEvent = Parsed<typeof trainerEvent>;
export type TrainerState = Extract<TrainerEvent, { type: 'state' }>['state'];
