/** The worker's reports: those of the core, to which the worker adds what only it knows, checkpoints, and the events of a run. */
import {
  deltaReport,
  evaluationFields,
  extractReport,
  fileReport,
  fileTensorFields,
  inspectionFields,
  planReport,
  refusalFields,
  sessionFields,
  stepFields,
  warning,
} from './generated/reports.js';
import {
  blob,
  bytes,
  count,
  document,
  flag,
  floats,
  listOf,
  missing,
  number,
  oneOf,
  optional,
  record,
  text,
  variant,
} from './parse.js';
import type { Parsed } from './parse.js';

export type {
  AdapterInfo,
  BaseInfo,
  DataInspection,
  DataPreview,
  DataReport,
  DeltaReport,
  EvalReport,
  ExportChoice,
  FileReport,
  FileSummary,
  Finding,
  GpuReport,
  ModelDetails,
  ModelInfo,
  PlanReport,
  Profile,
  SampledToken,
  Score,
  Verification,
} from './generated/reports.js';

export const sessionInfo = record({
  ...sessionFields,
  run: text,
  /** Name of the GPU. */
  device: text,
  /** Generation that this state was loaded from or last saved as. */
  generation: optional(count),
});
export type SessionInfo = Parsed<typeof sessionInfo>;

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

/** Reason why a file was refused (crate/FORMATS.md, "Refusals"), with its sentence. */
const refusal = record({ ...refusalFields, message: optional(text) });
export type Refusal = Parsed<typeof refusal>;

/** The document `tabtune.receipt.json`, with its own field names: the files written, their source and method, with checksums and digests. */
export type Receipt = Parsed<typeof document>;

/** One tensor, widened to f32. */
export const namedTensor = record({ ...fileTensorFields, values: floats });
export type NamedTensor = Parsed<typeof namedTensor>;

/** One tensor of files, with its bytes as they are stored. */
export const storedTensor = record({ ...fileTensorFields, bytes });
export type StoredTensor = Parsed<typeof storedTensor>;

/** A tokenizer that was trained: its tokenizer.json, which `newModel` takes, and its number of tokens. */
export const trainedTokenizer = record({ json: bytes, vocabSize: count });
export type TrainedTokenizer = Parsed<typeof trainedTokenizer>;

/** The plan of an import; without it the reasons why there is none. */
export const planned = record({
  plan: missing(planReport),
  refusals: listOf(record(refusalFields)),
});

/** Result of an inspection: what the files form together, and what can be done with them. */
export const inspectReport = record({
  ...inspectionFields,
  /** The tensors that an import takes, and where their bytes are; present if it was asked for. */
  plan: missing(planReport),
  /** All faults of the files taken together; empty if nothing was refused. */
  refusals: listOf(refusal),
  /** Unusual but allowed properties of the files. */
  warnings: listOf(warning),
  files: listOf(fileReport),
});
export type InspectReport = Parsed<typeof inspectReport>;

const written = { files: listOf(namedFile), receipt: missing(document) };
/** Files written by an export, returned if there is no target, and its receipt. */
export const writtenFiles = record(written);

const extracted = {
  /** How much of the difference between two models the adapter holds; lengths are Frobenius norms. */
  report: extractReport,
  warnings: listOf(warning),
};
export const extraction = record(extracted);
export const extractedFiles = record({ ...extracted, ...written });
export type Extraction = Parsed<typeof extractedFiles>;

/** Files of a delta, or of a model that one was added to or subtracted from; they are returned if there is no target. */
export const deltaFiles = record({ report: deltaReport, ...written });
export type DeltaFiles = Parsed<typeof deltaFiles>;

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
