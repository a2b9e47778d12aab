/** The worker's reports: those of the core, to which the worker adds what only it knows, and checkpoints. */
import { baseFile } from './base-files.js';
import type { BaseFile } from './base-files.js';
import {
  deltaReport,
  extractReport,
  fileReport,
  fileTensorFields,
  inspectionFields,
  planReport,
  refusalFields,
  sessionFields,
  warning,
} from './generated/reports.js';
import {
  blob,
  bytes,
  count,
  documentOf,
  flag,
  floats,
  listOf,
  missing,
  number,
  oneOf,
  optional,
  record,
  text,
} from './parse.js';
import type {
  DeltaReport,
  ExtractReport,
  FileReport,
  FileTensor,
  Finding,
  Inspection,
  PlanReport,
  Refusal as CoreRefusal,
  SessionInfo as CoreSessionInfo,
} from './generated/reports.js';
import type { Receipt } from './generated/documents.js';
import type { Parser } from './parse.js';

export type { Base, Contract, Receipt } from './generated/documents.js';
export type { Json, JsonObject } from './json.js';
export type { OnProgress, PhaseProgress, Progress } from './progress.js';

export type {
  AdapterInfo,
  BaseInfo,
  DataInspection,
  DataPreview,
  DataReport,
  DataWarning,
  DeltaReport,
  EvalReport,
  ExportChoice,
  ExtractReport,
  FileReport,
  FileSummary,
  FileTensor,
  Finding,
  GpuReport,
  ModelDetails,
  ModelInfo,
  PlanReport,
  Preview,
  Profile,
  RowPlace,
  SampledToken,
  Score,
  StepReport,
  TokenizerFacts,
  Verification,
  VerificationCheck,
} from './generated/reports.js';

/** Facts about a run. */
export interface SessionInfo extends CoreSessionInfo {
  /** Identifier of the run. */
  run: string;
  /** Name of the GPU. */
  device: string;
  /** Generation that this state was loaded from or last saved as. */
  generation?: number | undefined;
}
export const sessionInfo: Parser<SessionInfo> = record({
  ...sessionFields,
  run: text,
  device: text,
  generation: optional(count),
});

/** A file that a resume must be given again. */
export interface NeededFile {
  /** Name that it had; it may have another one. */
  name: string;
  /** Number of bytes. */
  bytes: number;
}
/** A saved checkpoint of a run. */
export interface CheckpointInfo {
  /** Identifier of the run. */
  run: string;
  /** Number of the checkpoint in its run, from 1; later ones have larger numbers. */
  generation: number;
  /** Number of steps that were complete. */
  step: number;
  /** Number of steps of the whole run. */
  totalSteps: number;
  /** Loss of the last step, in nats. */
  loss?: number | undefined;
  /** Loss of the last evaluation, in nats. */
  validationLoss?: number | undefined;
  /** Number of bytes in storage. */
  bytes: number;
  /** Time of the save, in milliseconds since 1970. */
  savedAt: number;
  /** Name of the run. */
  label: string;
  /** Name of the training data. */
  dataName: string;
  /** True if the training data are stored with the run. */
  hasData: boolean;
  /** Files of an adapter's base that `Trainer.resume` must be given again as `base`; false if it finds them itself, or needs none. */
  needsBase: false | NeededFile[];
  /** True if the checkpoint is marked, so that retention never drops it. */
  kept: boolean;
  /** Storage location: the database, or the alternative in the origin's private file system. */
  home: 'indexeddb' | 'opfs';
  /** Reason why it cannot be resumed, as a dotted code. */
  fault?: string | undefined;
}
/** A saved checkpoint as the worker reports it: with the records of the run's base. */
export type StoredCheckpoint = Omit<CheckpointInfo, 'needsBase'> & {
  base?: BaseFile[] | undefined;
};
export const storedCheckpoint: Parser<StoredCheckpoint> = record({
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
  base: optional(listOf(baseFile)),
  kept: flag,
  home: oneOf('indexeddb', 'opfs'),
  fault: optional(text),
});

/** A file that was written. */
export interface NamedFile {
  /** Name, with the folders inside the export. */
  name: string;
  /** Contents. */
  blob: Blob;
}
export const namedFile: Parser<NamedFile> = record({ name: text, blob });

/** Reason why a file was refused (crate/FORMATS.md, "Refusals"), with its sentence. */
export interface Refusal extends CoreRefusal {
  /** The refusal as a sentence. */
  message?: string | undefined;
}
const refusal: Parser<Refusal> = record({ ...refusalFields, message: optional(text) });

/** One tensor, widened to f32. */
export interface NamedTensor extends FileTensor {
  /** All values, row by row. */
  values: Float32Array;
}
export const namedTensor: Parser<NamedTensor> = record({ ...fileTensorFields, values: floats });

/** One tensor of files, with its bytes as they are stored. */
export interface StoredTensor extends FileTensor {
  /** Bytes as in the file. */
  bytes: Uint8Array;
}
export const storedTensor: Parser<StoredTensor> = record({ ...fileTensorFields, bytes });

/** A tokenizer that was trained. */
export interface TrainedTokenizer {
  /** Its tokenizer.json, which `newModel` takes. */
  json: Uint8Array;
  /** Number of tokens. */
  vocabSize: number;
}
export const trainedTokenizer: Parser<TrainedTokenizer> = record({ json: bytes, vocabSize: count });

/** The plan of an import; without it the reasons why there is none. */
export const planned = record({
  plan: missing(planReport),
  refusals: listOf(record(refusalFields)),
});

/** Result of an inspection: what the files form together, and what can be done with them. */
export interface InspectReport extends Omit<
  Inspection,
  'plan' | 'refusals' | 'warnings' | 'files'
> {
  /** The tensors that an import takes, and where their bytes are; present if it was asked for. */
  plan?: PlanReport | undefined;
  /** All faults of the files taken together; empty if nothing was refused. */
  refusals: Refusal[];
  /** Unusual but allowed properties of the files. */
  warnings: Finding[];
  /** The files, one by one. */
  files: FileReport[];
}
export const inspectReport: Parser<InspectReport> = record({
  ...inspectionFields,
  plan: missing(planReport),
  refusals: listOf(refusal),
  warnings: listOf(warning),
  files: listOf(fileReport),
});

/** Files that were written. */
export interface Written {
  /** The files, if there was no target. */
  files: NamedFile[];
  /** The receipt, if one was written. */
  receipt?: Receipt | undefined;
}
const written = { files: listOf(namedFile), receipt: missing(documentOf<Receipt>()) };
/** Files written by an export, returned if there is no target, and its receipt. */
export const writtenFiles: Parser<Written> = record(written);

const extracted = { report: extractReport, warnings: listOf(warning) };
export const extraction = record(extracted);
/** An adapter that was computed from two models. */
export interface Extraction extends Written {
  /** How much of the difference between two models the adapter holds; lengths are Frobenius norms. */
  report: ExtractReport;
  /** Unusual but allowed properties of the files. */
  warnings: Finding[];
}
export const extractedFiles: Parser<Extraction> = record({ ...extracted, ...written });

/** Files of a delta, or of a model that one was added to or subtracted from; they are returned if there is no target. */
export interface DeltaFiles extends Written {
  /** Names and numbers of weights. */
  report: DeltaReport;
}
export const deltaFiles: Parser<DeltaFiles> = record({ report: deltaReport, ...written });

/** A download that is kept in the origin's private files. */
export interface DownloadInfo {
  /** `hf:owner/name@commit/path`, or the address. */
  name: string;
  /** Number of bytes that are kept. */
  bytes: number;
  /** Number of bytes of the whole file. */
  size: number;
  /** False for a download that broke off; another opening continues it. */
  complete: boolean;
  /** SHA-256 of a complete file. */
  sha256?: string | undefined;
}
export const downloadInfo: Parser<DownloadInfo> = record({
  name: text,
  bytes: count,
  size: count,
  complete: flag,
  sha256: missing(text),
});
