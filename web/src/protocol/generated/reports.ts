// Made by npm run generate; not for editing.
/** Reports and errors of the core, under the names that it gives them for TypeScript. */
import { count, documentOf, flag, json, listOf, missing, nullable, number, oneOf, optional, record, tableOf, text } from '../parse.js';
import type { Parser } from '../parse.js';
import type { Json, JsonObject } from '../json.js';
import type { Base, Receipt, Contract } from './documents.js';

/** Reason for which a file was refused (crate/FORMATS.md, "Refusals"). */
export interface Refusal {
  /** Stable dotted code, for example `safetensors.offset.overlap`. */
  code: string;
  /** Stage that the file reached: `open`, `bind` or `read`. */
  stage: string;
  /** Name of the file, escaped. */
  artifact: string;
  /** Tensor, key or shard, escaped and shortened. */
  subject?: string | undefined;
  /** Expected value. */
  expected?: string | undefined;
  /** Value that was found. */
  found?: string | undefined;
  /** Suggestion for the user. */
  hint?: string | undefined;
  /** Offset in the file, in bytes. */
  byte_offset?: number | undefined;
}
export const refusalFields = {
  code: text,
  stage: text,
  artifact: text,
  subject: optional(text),
  expected: optional(text),
  found: optional(text),
  hint: optional(text),
  byte_offset: optional(count),
};
export const refusal: Parser<Refusal> = record(refusalFields);

/** Details of an error beyond its message: the dotted code, and the fields that belong to it. */
export interface ErrorDetail {
  /** Fixed dotted code, for example `safetensors.offset.overlap`. */
  code?: string | undefined;
  /** Path of the option or name of the file that is at fault. */
  path?: string | undefined;
  /** Reason why a file was refused. */
  refusal?: Refusal | undefined;
  /** All reasons why a file was refused, or all settings that were; never empty. */
  refusals?: Refusal[] | undefined;
  /** Number of bytes, tokens or other things that are needed. */
  need?: number | undefined;
  /** Number of them that there is. */
  have?: number | undefined;
  /** With LIMIT_EXCEEDED: name of the limit. */
  limit?: string | undefined;
  /** With MISSING_FEATURE: name of the feature. */
  feature?: string | undefined;
  /** With SHADER_FAILED: name of the kernel. */
  kernel?: string | undefined;
  /** Position in a file, in bytes. */
  offset?: number | undefined;
  /** With INTEGRITY: the digest that was expected. */
  want?: string | undefined;
  /** With INTEGRITY: the digest that was found. */
  got?: string | undefined;
  /** Reason that a browser or a server states. */
  reason?: string | undefined;
  /** The run that another tab holds. */
  run?: string | undefined;
  /** With CHECKPOINT_CORRUPT: number of the chunk. */
  chunk?: number | undefined;
  /** With NON_FINITE: the refused step; with a GPU fault: the last confirmed step. */
  step?: number | undefined;
  /** With NON_FINITE: `loss` or `"grad_norm"`. */
  tensor?: string | undefined;
  /** True if the call was abandoned and the trainer continues in another worker. */
  recovered?: boolean | undefined;
}
export const errorDetailFields = {
  code: optional(text),
  path: optional(text),
  refusal: optional(refusal),
  refusals: optional(listOf(refusal)),
  need: optional(number),
  have: optional(number),
  limit: optional(text),
  feature: optional(text),
  kernel: optional(text),
  offset: optional(count),
  want: optional(text),
  got: optional(text),
  reason: optional(text),
  run: optional(text),
  chunk: optional(count),
  step: optional(count),
  tensor: optional(text),
  recovered: optional(flag),
};
export const errorDetail: Parser<ErrorDetail> = record(errorDetailFields);

/** Report of one optimizer step. */
export interface StepReport {
  /** Number of the step, counted from 1. */
  step: number;
  /** Number of passes over the data at the end of the step, in fractions. */
  epoch: number;
  /** Mean loss over the step's counted targets before the update, in nats. */
  loss: number;
  /** Global 2-norm of the gradients before clipping. */
  gradNorm: number;
  /** Learning rate of this step. */
  learningRate: number;
  /** Number of counted targets of this step. */
  tokens: number;
  /** Wall time of this step, in seconds. */
  secs: number;
}
export const stepFields = {
  step: count,
  epoch: number,
  loss: number,
  gradNorm: number,
  learningRate: number,
  tokens: count,
  secs: number,
};
export const step: Parser<StepReport> = record(stepFields);

/** Report of one evaluation. */
export interface EvalReport {
  /** Mean loss over counted targets, in nats. */
  loss: number;
  /** exp(loss), if f64 has such a number. */
  perplexity?: number | undefined;
  /** True if exp(loss) is beyond f64. */
  perplexityOverflow?: boolean | undefined;
  /** Share of the counted targets that are the arg max of the logits, which greedy generation takes; among equal logits, the lowest id. */
  accuracy: number;
  /** Number of counted targets. */
  tokens: number;
}
export const evaluationFields = {
  loss: number,
  perplexity: optional(number),
  perplexityOverflow: optional(flag),
  accuracy: number,
  tokens: count,
};
export const evaluation: Parser<EvalReport> = record(evaluationFields);

/** Warning: something that the caller should know, although nothing was refused. */
export interface Finding {
  /** Stable dotted code. */
  code: string;
  /** Subject: names of parameters, or a file. */
  subject?: string | undefined;
  /** Description of what happened. */
  message: string;
}
export const warningFields = {
  code: text,
  subject: optional(text),
  message: text,
};
export const warning: Parser<Finding> = record(warningFields);

/** One generated token. */
export interface SampledToken {
  /** Token id. */
  id: number;
  /** Text that the token adds. */
  text: string;
  /** Natural logarithm of its probability under the model, before temperature and cuts. */
  logprob: number;
  /** The likeliest tokens, likeliest first. */
  top: {
    /** Token id. */
    id: number;
    /** Text of the token. */
    text: string;
    /** Probability under the model, before temperature and cuts. */
    prob: number;
  }[];
}
export const tokenFields = {
  id: count,
  text: text,
  logprob: number,
  top: listOf(record({
    id: count,
    text: text,
    prob: number,
  })),
};
export const token: Parser<SampledToken> = record(tokenFields);

/** Tokens of a text with their probabilities. */
export interface Score {
  /** All tokens. */
  tokens: {
    /** Token id. */
    id: number;
    /** Text that the token adds in the middle of a text. */
    text: string;
    /** Natural logarithm of its probability after the tokens before it; absent for the first token. */
    logprob?: number | undefined;
    /** Rank among all tokens by probability, from 1; absent for the first token. */
    rank?: number | undefined;
    /** Likeliest tokens of this position, likeliest first. */
    top: {
      /** Token id. */
      id: number;
      /** Text of the token. */
      text: string;
      /** Probability under the model, before temperature and cuts. */
      prob: number;
    }[];
  }[];
  /** Mean of −logprob over the tokens after the first, in nats; absent for a text of one token. */
  loss?: number | undefined;
  /** Warnings about the text or the conversation. */
  warnings: {
    /** Stable dotted code. */
    code: string;
    /** Message of the warning, as a sentence. */
    message: string;
  }[];
}
export const scoreFields = {
  tokens: listOf(record({
    id: count,
    text: text,
    logprob: optional(number),
    rank: optional(count),
    top: listOf(record({
      id: count,
      text: text,
      prob: number,
    })),
  })),
  loss: optional(number),
  warnings: listOf(record({
    code: text,
    message: text,
  })),
};
export const score: Parser<Score> = record(scoreFields);

/** Where the device's time of a step goes. */
export interface Profile {
  /** Steps that were timed. */
  steps: number;
  /** The clock that was used. */
  timing: 'device' | 'system';
  /** Mean milliseconds of all kernels per step. */
  ms: number;
  /** Mean launches of the catalogue's kernels per step, by the counter of `dispatches`. */
  dispatches: number;
  /** Number of launches in all steps that were shorter than the resolution of the device's clock, and so have no time. */
  unmeasured: number;
  /** Most bytes of buffers in use on the device at once. */
  inUseBytes: number;
  /** Most bytes of the pages that its allocator had at once, used or not. */
  reservedBytes: number;
  /** The kernels, slowest first. */
  kernels: {
    /** Its stem; for a kernel that Burn generated `Burn: ` and its type. */
    kernel: string;
    /** Mean launches per step. */
    launches: number;
    /** Mean milliseconds per step. */
    ms: number;
    /** Share of the time of all kernels, 0 to 1. */
    share: number;
  }[];
}
export const profileFields = {
  steps: count,
  timing: oneOf('device', 'system'),
  ms: number,
  dispatches: number,
  unmeasured: count,
  inUseBytes: count,
  reservedBytes: count,
  kernels: listOf(record({
    kernel: text,
    launches: number,
    ms: number,
    share: number,
  })),
};
export const profile: Parser<Profile> = record(profileFields);

/** Peak rates of a GPU, and how near the kernels come to them. */
export interface GpuReport {
  /** Name of the adapter. */
  adapter: string;
  /** Name and version of its driver; empty in browsers, which do not report it. */
  driver: string;
  /** `webgpu`, `vulkan`, `metal` or `dx12`. */
  backend: string;
  /** True for a CPU that runs shaders, which gets kernels of its own. */
  software: boolean;
  /** Clock that was used; kernels that are shorter than its ticks are measured by the host's clock. */
  timing: 'device' | 'system';
  /** Peak rate of chains of multiply-adds in f32, in 10⁹ floating point operations per second. */
  peakGflopPerSec: number;
  /** Rate of a copy in 10⁹ bytes per second, counting reads and writes. */
  copyGbPerSec: number;
  /** All kernels, those of the peak and the copy first. */
  kernels: {
    /** Name of the computation. */
    name: string;
    /** Shape at which it was measured. */
    shape: string;
    /** True if that is the reference shape. Slow devices get a part of it. */
    whole: boolean;
    /** File stems of the kernels that this device runs for it. */
    kernels: string[];
    /** Duration of a pass in milliseconds. */
    ms: number;
    /** Rate in 10⁹ floating point operations of the formula per second; for arithmetic only. */
    gflopPerSec?: number | undefined;
    /** Rate in 10⁹ bytes per second, counting the bytes that have to be read and written, each value once. */
    gbPerSec: number;
    /** Speed as a fraction of the peak or of a copy, as `of` says. */
    fraction: number;
    /** Quantity that `fraction` refers to. */
    of: 'peak' | 'copy';
    /** Number of times that one step of SmolLM2-135M computes it, if it is one of that step's products; 0 otherwise. */
    inStep: number;
  }[];
}
export const gpuFields = {
  adapter: text,
  driver: text,
  backend: text,
  software: flag,
  timing: oneOf('device', 'system'),
  peakGflopPerSec: number,
  copyGbPerSec: number,
  kernels: listOf(record({
    name: text,
    shape: text,
    whole: flag,
    kernels: listOf(text),
    ms: number,
    gflopPerSec: optional(number),
    gbPerSec: number,
    fraction: number,
    of: oneOf('peak', 'copy'),
    inStep: count,
  })),
};
export const gpu: Parser<GpuReport> = record(gpuFields);

/** Facts about an opened device. */
export interface DeviceInfo {
  /** Name of the adapter. */
  adapter: string;
  /** Name and version of the driver; empty if the adapter does not report it, as in browsers. */
  driver: string;
  /** `webgpu`, `vulkan`, `metal`, `dx12` or `cpu`. */
  backend: string;
  /** Limits that bound the size of tensors. */
  limits: {
    /** Maximum size of a buffer. */
    maxBufferSize: number;
    /** Maximum size of the part of a buffer that can be bound to a kernel. */
    maxStorageBufferBindingSize: number;
  };
}
export const deviceFields = {
  adapter: text,
  driver: text,
  backend: text,
  limits: record({
    maxBufferSize: count,
    maxStorageBufferBindingSize: count,
  }),
};
export const device: Parser<DeviceInfo> = record(deviceFields);

/** A tensor in the header of a file: its name, type and position. */
export interface FileTensor {
  /** Name in the file, unchanged. */
  name: string;
  /** dtype: a word of safetensors, or `GGML:<type>`. */
  dtype: string;
  /** Row-major shape; empty for a scalar. The dimensions in a GGUF file are in the opposite order. */
  shape: number[];
}
export const fileTensorFields = {
  name: text,
  dtype: text,
  shape: listOf(count),
};
export const fileTensor: Parser<FileTensor> = record(fileTensorFields);

/** Known facts about a tokenizer. */
export interface TokenizerFacts {
  /** Kind of its model. */
  kind: 'byte_pair_encoding' | 'unigram' | 'word_piece' | 'word_level' | 'characters';
  /** Ids that end a text. */
  eos: number[];
  /** True if it can format chats. */
  hasChatTemplate: boolean;
}
export const tokenizerFields = {
  kind: oneOf('byte_pair_encoding', 'unigram', 'word_piece', 'word_level', 'characters'),
  eos: listOf(count),
  hasChatTemplate: flag,
};
export const tokenizer: Parser<TokenizerFacts> = record(tokenizerFields);

/** Facts about an adapter. */
export interface AdapterInfo {
  /** Rank of the factors. */
  r: number;
  /** Their product is multiplied by alpha / r; by alpha / √r with rslora. */
  alpha: number;
  /** Names of the modules with factors. */
  targets: string[];
  /** Number of trained values. */
  parameters: number;
  /** Size of these values on the device in bytes. */
  bytes: number;
}
export const adapterInfoFields = {
  r: count,
  alpha: number,
  targets: listOf(text),
  parameters: count,
  bytes: count,
};
export const adapterInfo: Parser<AdapterInfo> = record(adapterInfoFields);

/** Facts about the model that a run started from. */
export interface BaseInfo {
  /** Name that its files state, else the name of the first file without its ending. */
  name: string;
  /** Form of the files: `hfFolder` or `gguf`. */
  format: string;
  /** The weight files. */
  files: {
    /** File name. */
    name: string;
    /** Size in bytes. */
    bytes: number;
    /** SHA-256 of the whole file, if all of it was read. */
    sha256?: string | undefined;
    /** SHA-256 of the part that lists its tensors. */
    headerSha256?: string | undefined;
    /** SHA-256 of the sums of its pieces, if those are known: equal for equal files. */
    piecesSha256?: string | undefined;
  }[];
  /** For an adapter run: number of the base's matrices on the device, by storage type. */
  storage: Readonly<Record<string, number>>;
  /** For an adapter run: number of bytes of the base on the device. */
  bytes: number;
}
export const baseInfoFields = {
  name: text,
  format: text,
  files: listOf(record({
    name: text,
    bytes: count,
    sha256: optional(text),
    headerSha256: optional(text),
    piecesSha256: optional(text),
  })),
  storage: tableOf(count),
  bytes: count,
};
export const baseInfo: Parser<BaseInfo> = record(baseInfoFields);

/** Facts about a model. */
export interface ModelInfo {
  /** Family of the model, such as `llama`. */
  architecture: string;
  /** Number of weights. */
  parameters: number;
  /** Tensors with weights. */
  tensors: {
    /** Name in Hugging Face's format. */
    name: string;
    /** Type in its file, such as `BF16` or `GGML:Q4_K`. */
    dtype: string;
    /** Shape, outermost dimension first. */
    shape: number[];
  }[];
  /** Configuration under the names that tabtune gives to the sizes and switches of all families. */
  config: JsonObject;
  /** Number of rows of the table of embeddings. */
  vocabSize: number;
  /** The tokenizer; null for a model without one. */
  tokenizer: TokenizerFacts | null;
  /** Form of the files: `hfFolder` or `gguf`; `scratch` for a new model. */
  sourceFormat: string;
  /** The separate adapter of the model, if it was opened with one. */
  adapter: AdapterInfo | null;
  /** Warnings about the files. */
  warnings: Finding[];
}
export const modelInfoFields = {
  architecture: text,
  parameters: count,
  tensors: listOf(record({
    name: text,
    dtype: text,
    shape: listOf(count),
  })),
  config: documentOf<JsonObject>(),
  vocabSize: count,
  tokenizer: nullable(tokenizer),
  sourceFormat: text,
  adapter: nullable(adapterInfo),
  warnings: listOf(warning),
};
export const modelInfo: Parser<ModelInfo> = record(modelInfoFields);

/** Device memory that a run needs. */
export interface Estimate {
  /** Bytes in use at the peak of a step. */
  needBytes: number;
  parts: {
    /** Trained weights of the model; 0 if an adapter is trained. */
    weights: number;
    /** Trained factors and modules of an adapter; 0 without one. */
    adapter: number;
    base: number;
    grads: number;
    optimizer: number;
    activations: number;
  };
}
export const estimateFields = {
  needBytes: count,
  parts: record({
    weights: count,
    adapter: count,
    base: count,
    grads: count,
    optimizer: count,
    activations: count,
  }),
};
export const estimate: Parser<Estimate> = record(estimateFields);

/** A row of a file. */
export interface RowPlace {
  /** Index of the file in the report. */
  file: number;
  /** Line at which the row begins, counted from 1. */
  line: number;
  /** Number of the row in its file, counted from 1. */
  row: number;
}
export const rowPlaceFields = {
  file: count,
  line: count,
  row: count,
};
export const rowPlace: Parser<RowPlace> = record(rowPlaceFields);

/** Warning about data that was not refused. */
export interface DataWarning {
  /** Stable dotted code. */
  code: string;
  /** Number of occurrences. */
  count: number;
  /** First rows concerned. */
  rows: RowPlace[];
  /** Message of the warning, as a sentence. */
  message: string;
}
export const dataWarningFields = {
  code: text,
  count: count,
  rows: listOf(rowPlace),
  message: text,
};
export const dataWarning: Parser<DataWarning> = record(dataWarningFields);

/** Report on training data as they are learned. */
export interface DataReport {
  /** Report on each file. */
  files: {
    /** Name of the file. */
    name: string;
    /** Form that was detected or given. */
    form: 'text' | 'jsonl' | 'json' | 'csv' | 'tsv' | 'tokens';
    /** Number of rows; null for a stream of text or ids. */
    rows: number | null;
  }[];
  /** Number of rows of each kind: chat, completion, text, tokens. */
  shapes: Readonly<Record<string, number>>;
  /** Number of chats by the method that found their learned tokens: generation, prefix, per-answer, all. */
  rules: Readonly<Record<string, number>>;
  /** Number of examples that are trained on; 0 for a stream. */
  examples: number;
  /** Number of examples, or of tokens of a stream, that are kept for evaluation. */
  validation: number;
  /** Token counts of the training part. */
  tokens: {
    /** Number of tokens in the training part. */
    total: number;
    /** Number of these that are learned. */
    learned: number;
  };
  /** Lengths of the training examples; null for a stream. */
  lengths: {
    /** Minimum. */
    min: number;
    /** Median. */
    p50: number;
    /** 95th percentile: 95 % of the examples are not longer. */
    p95: number;
    /** Maximum. */
    max: number;
    /** Number of examples by length, from 0 to the maximum in equal steps of `histogramStep` tokens. */
    histogram: number[];
    /** Number of tokens from one bar of the histogram to the next. */
    histogramStep: number;
  } | null;
  /** Number of tokens in a sequence, T. */
  seqLen: number;
  /** Number of examples whose end is left out. */
  cut: number;
  /** Number of examples that are left out: too long by `onLong`, or without a learned token within `seqLen`. */
  skipped: number;
  /** Number of sequences in an epoch. */
  windows: number;
  /** Share of the positions of these sequences that hold tokens. */
  packedFraction: number;
  /** Number of steps in an epoch; the last one may continue into the next epoch. */
  stepsPerEpoch: number;
  /** Tokens that end a text or a turn. */
  end: string[];
  /** Warnings about the data. */
  warnings: DataWarning[];
  /** SHA-256 of the examples, or of the stream. */
  digest: string;
}
export const dataReportFields = {
  files: listOf(record({
    name: text,
    form: oneOf('text', 'jsonl', 'json', 'csv', 'tsv', 'tokens'),
    rows: nullable(count),
  })),
  shapes: tableOf(count),
  rules: tableOf(count),
  examples: count,
  validation: count,
  tokens: record({
    total: count,
    learned: count,
  }),
  lengths: nullable(record({
    min: count,
    p50: count,
    p95: count,
    max: count,
    histogram: listOf(count),
    histogramStep: count,
  })),
  seqLen: count,
  cut: count,
  skipped: count,
  windows: count,
  packedFraction: number,
  stepsPerEpoch: count,
  end: listOf(text),
  warnings: listOf(dataWarning),
  digest: text,
};
export const dataReport: Parser<DataReport> = record(dataReportFields);

/** A training example, or the beginning of a stream. */
export interface Preview {
  /** Place of its row; null for the beginning of a stream. */
  row: RowPlace | null;
  /** Its tokens, in runs of learned tokens and runs of tokens that are only read. */
  segments: {
    /** Text of the tokens. */
    text: string;
    /** The tokens. */
    tokens: {
      /** Id of the token. */
      id: number;
      /** Text of the token; the replacement character represents parts of a character. */
      text: string;
    }[];
    /** True if they are targets of the loss. */
    learned: boolean;
  }[];
}
export const previewFields = {
  row: nullable(rowPlace),
  segments: listOf(record({
    text: text,
    tokens: listOf(record({
      id: count,
      text: text,
    })),
    learned: flag,
  })),
};
export const preview: Parser<Preview> = record(previewFields);

/** List of `Preview`. */
export type DataPreview = Preview[];
export const dataPreview: Parser<DataPreview> = listOf(preview);

/** Summary of a file, as far as it is known without a tokenizer. */
export interface FileSummary {
  /** Name of the file. */
  name: string;
  /** Form that was detected or given. */
  form: 'text' | 'jsonl' | 'json' | 'csv' | 'tsv' | 'tokens';
  /** Number of rows; null for a stream of text or ids. */
  rows: number | null;
  /** Number of rows of each kind: chat, completion, text, tokens, and faulty. */
  shapes: Readonly<Record<string, number>>;
  /** Keys of the rows, in the order of their first occurrence; at most 50. */
  columns: string[];
  /** Number of characters of a text or of rows, or of ids of token ids. */
  characters: number;
  /** Warnings about the file itself. */
  warnings: DataWarning[];
}
export const fileSummaryFields = {
  name: text,
  form: oneOf('text', 'jsonl', 'json', 'csv', 'tsv', 'tokens'),
  rows: nullable(count),
  shapes: tableOf(count),
  columns: listOf(text),
  characters: count,
  warnings: listOf(dataWarning),
};
export const fileSummary: Parser<FileSummary> = record(fileSummaryFields);

export const fileSummaries: Parser<FileSummary[]> = listOf(fileSummary);

/** Report on how data are learned, with the first examples. */
export interface DataInspection {
  /** Report on the data. */
  report: DataReport;
  /** The first examples. */
  preview: Preview[];
  /** The settings of a run on these data. */
  config: JsonObject;
  /** Settings that would be chosen for it, with their reasons; none if a learning rate is given, or if the data are the beginning of a file. */
  chosen: {
    /** Name of the setting. */
    setting: string;
    /** Its value. */
    value: Json;
    /** Reason for the value. */
    reason: string;
  }[];
}
export const dataInspectionFields = {
  report: dataReport,
  preview: listOf(preview),
  config: documentOf<JsonObject>(),
  chosen: listOf(record({
    setting: text,
    value: json,
    reason: text,
  })),
};
export const dataInspection: Parser<DataInspection> = record(dataInspectionFields);

/** Facts about a run. */
export interface SessionInfo {
  /** Number of steps that are complete. */
  completedSteps: number;
  /** Number of steps of the whole run. */
  totalSteps: number;
  /** Settings of the run. */
  config: JsonObject;
  /** Settings that were chosen for a new run without a learning rate, with their reasons. */
  chosen: {
    /** Name of the setting. */
    setting: string;
    /** Its value. */
    value: Json;
    /** Reason for the value. */
    reason: string;
  }[];
  /** The model that is trained. */
  model: ModelInfo;
  /** The adapter that is trained in place of the weights, if there is one. */
  adapter: AdapterInfo | null;
  /** Files that the run started from; a new model has none. */
  base: BaseInfo | null;
  /** Number of tokens in the training data. */
  dataTokens: number;
  /** Report on the training data and how they are learned. */
  data: DataReport;
  /** Bytes that are reserved on the device, if it reports them. */
  gpuBytes?: number | undefined;
  /** Tensors that APOLLO leaves to AdamW: embeddings and head unless also projected, vectors, and those with a shorter side of at most the rank. */
  fallbacks: string[];
  /** Step after which a decay or an annealing begins, if one is planned or has begun. */
  scheduleStart?: number | undefined;
  /** Current learning rate, if it was set manually. */
  manualLearningRate?: number | undefined;
  /** Warnings about settings, data and what a resume dropped or changed. */
  warnings: Finding[];
}
export const sessionFields = {
  completedSteps: count,
  totalSteps: count,
  config: documentOf<JsonObject>(),
  chosen: listOf(record({
    setting: text,
    value: json,
    reason: text,
  })),
  model: modelInfo,
  adapter: nullable(adapterInfo),
  base: nullable(baseInfo),
  dataTokens: count,
  data: dataReport,
  gpuBytes: optional(count),
  fallbacks: listOf(text),
  scheduleStart: optional(count),
  manualLearningRate: optional(number),
  warnings: listOf(warning),
};
export const session: Parser<SessionInfo> = record(sessionFields);

/** Progress of a run after a call, and the reports that arrived during it. */
export interface Advanced {
  /** Number of steps that are complete. */
  completedSteps: number;
  /** Reports of steps. */
  reports: StepReport[];
}
export const advancedFields = {
  completedSteps: count,
  reports: listOf(step),
};
export const advanced: Parser<Advanced> = record(advancedFields);

/** Ids of a text, and warnings about it. */
export interface Tokenized {
  /** The ids, without special tokens. */
  ids: number[];
  /** Warnings about the text. */
  warnings: {
    /** Stable dotted code. */
    code: string;
    /** Message of the warning, as a sentence. */
    message: string;
  }[];
}
export const tokenizedFields = {
  ids: listOf(count),
  warnings: listOf(record({
    code: text,
    message: text,
  })),
};
export const tokenized: Parser<Tokenized> = record(tokenizedFields);

/** Name and size of a file of a stream. */
export interface FileInfo {
  /** File name, without a path. */
  name: string;
  /** Size in bytes. */
  bytes: number;
}
export const fileInfoFields = {
  name: text,
  bytes: count,
};
export const fileInfo: Parser<FileInfo> = record(fileInfoFields);

/** One way of exporting a model, planned as far as that needs no values. */
export interface ExportChoice {
  /** Format of the export. */
  format: 'safetensors' | 'gguf' | 'json' | 'peft' | 'gguf-adapter';
  /** Types of the matrices of a GGUF file, or the dtype that must be requested for a folder. */
  type?: string | undefined;
  /** True if the export is possible. */
  ok: boolean;
  /** Total size of the files, including the receipt. */
  bytes?: number | undefined;
  /** Parts of the model that are lost. */
  lossy?: string | undefined;
  /** `base` if the files that the model came from must be given again. */
  needs?: 'base' | undefined;
  /** Reason if it is not possible. */
  reason?: string | undefined;
}
export const exportChoiceFields = {
  format: oneOf('safetensors', 'gguf', 'json', 'peft', 'gguf-adapter'),
  type: optional(text),
  ok: flag,
  bytes: optional(count),
  lossy: optional(text),
  needs: optional(oneOf('base')),
  reason: optional(text),
};
export const exportChoice: Parser<ExportChoice> = record(exportChoiceFields);

/** Facts about a model other than its weights. */
export interface ModelDetails {
  /** Forms in which it can leave. */
  exports: ExportChoice[];
  /** Parts of the model that import, export and a round trip preserve, for every format that a model can take. */
  contract?: Contract | undefined;
  /** Receipt of the import, for a model that was opened. */
  receipt?: Receipt | undefined;
  /** Files that training starts from, with their checksums. */
  base?: Base | undefined;
}
export const modelDetailsFields = {
  exports: listOf(exportChoice),
  contract: optional(documentOf<Contract>()),
  receipt: optional(documentOf<Receipt>()),
  base: optional(documentOf<Base>()),
};
export const modelDetails: Parser<ModelDetails> = record(modelDetailsFields);

/** Verdict on a file. */
export interface FileReport {
  /** Name of the file, escaped. */
  file: string;
  /** Format as which the file was read. */
  format?: 'safetensors' | 'gguf' | 'index' | 'peft' | 'json' | undefined;
  /** True if nothing was refused. */
  ok: boolean;
  /** Code of the refusal. */
  code?: string | undefined;
  /** `ok`, or the stage of the refusal: `open`, `bind`, `read`. */
  stage: string;
  /** Tensor, key or shard that was refused. */
  subject?: string | undefined;
  /** Value that was found there. */
  found?: string | undefined;
  /** Message of the refusal or error. */
  message?: string | undefined;
  /** Unusual but allowed properties of the file. */
  warnings: {
    /** Stable dotted word. */
    code: string;
    /** Tensor, key or shard, escaped and shortened. */
    subject: string;
  }[];
  /** Number of NaN and infinite values by tensor; present only after reading, and only for tensors that have any. */
  non_finite?: Readonly<Record<string, number>> | undefined;
  /** Number of tensors. */
  tensors: number;
  /** List of the tensors. */
  inventory: FileTensor[];
}
export const fileReportFields = {
  file: text,
  format: missing(oneOf('safetensors', 'gguf', 'index', 'peft', 'json')),
  ok: flag,
  code: optional(text),
  stage: text,
  subject: optional(text),
  found: optional(text),
  message: optional(text),
  warnings: listOf(record({
    code: text,
    subject: text,
  })),
  non_finite: optional(tableOf(count)),
  tensors: count,
  inventory: listOf(fileTensor),
};
export const fileReport: Parser<FileReport> = record(fileReportFields);

/** Description of files: their kind, and their possible uses. */
export interface Inspection {
  /** Kind of the files. */
  kind: 'model' | 'adapter' | 'optimizer' | 'state' | 'checkpoint' | 'unknown';
  /** List of the tensors; those of a model have Hugging Face's names. */
  tensors: FileTensor[];
  /** Shape of the model. */
  config: JsonObject | null;
  /** Tokenizer of the model. */
  tokenizer?: TokenizerFacts | undefined;
  /** The weight files with their checksums. */
  base?: Base | undefined;
  /** Contract that states what import, export and a round trip preserve. */
  contract?: Contract | undefined;
  /** Formats that it can be exported to. */
  exports: ExportChoice[];
  /** Verdict on training it. */
  trainable: {
    /** True if the model can be trained. */
    ok: boolean;
    /** Reason if it cannot be trained. */
    reason?: string | undefined;
    /** Every update rule in both precisions. */
    options: {
      /** Public name of the update rule. */
      optimizer: string;
      /** Storage of weight matrices and moments. */
      precision: 'f32' | 'bf16';
      /** Peak number of bytes on the device during a step of one sequence. */
      bytes: number;
    }[];
  };
  /** All faults of the files together. */
  refusals: Refusal[];
  /** Unusual but allowed properties of the files. */
  warnings: {
    /** Stable dotted word. */
    code: string;
    /** Tensor, key or file. */
    subject: string;
    /** Message of the warning. */
    message: string;
  }[];
}
export const inspectionFields = {
  kind: oneOf('model', 'adapter', 'optimizer', 'state', 'checkpoint', 'unknown'),
  tensors: listOf(fileTensor),
  config: nullable(documentOf<JsonObject>()),
  tokenizer: optional(tokenizer),
  base: optional(documentOf<Base>()),
  contract: optional(documentOf<Contract>()),
  exports: listOf(exportChoice),
  trainable: record({
    ok: flag,
    reason: optional(text),
    options: listOf(record({
      optimizer: text,
      precision: oneOf('f32', 'bf16'),
      bytes: count,
    })),
  }),
  refusals: listOf(refusal),
  warnings: listOf(record({
    code: text,
    subject: text,
    message: text,
  })),
};
export const inspection: Parser<Inspection> = record(inspectionFields);

/** Plan of an import: the tensors that it takes, and where their bytes are. */
export interface PlanReport {
  /** Container of the files. */
  sourceFormat: string;
  /** Digest of the request, the headers and the entries, in hex: equal plans have equal digests. */
  planDigest: string;
  /** Tensors that are taken, ascending by their new names. */
  entries: {
    /** New name. */
    name: string;
    /** Name in the files. */
    sourceKey: string;
    /** Name of its file. In a JSON state dict a tensor has no position. */
    file: string;
    /** Position of its first byte in the file. */
    begin: number;
    /** Position one past its last byte. */
    end: number;
    /** dtype as stored. */
    dtype: string;
    /** Row-major shape. */
    shape: number[];
    /** True if its values have not been read. */
    deferred: boolean;
  }[];
  /** Groups whose optimizer state is taken with them, in their order. */
  groups: {
    /** Name of the group. */
    groupId: string;
    /** Number of its parameters. */
    members: number;
    /** Number of steps that were applied to it. */
    appliedSteps: number;
    /** Residency of its state when it was saved, if that is stated. */
    residency?: 'host' | 'device' | 'offloaded' | undefined;
    /** Intended residency of its state, if that is stated. */
    residencyPolicy?: {
      /** Residency during a step. */
      step: 'host' | 'device' | 'offloaded';
      /** Residency between steps. */
      idle: 'host' | 'device' | 'offloaded';
    } | undefined;
  }[];
  /** Unusual but allowed properties of the files and the request. */
  warnings: {
    /** Stable dotted word. */
    code: string;
    /** Tensor, key or file. */
    subject: string;
    /** Message of the warning. */
    message: string;
  }[];
}
export const planReportFields = {
  sourceFormat: text,
  planDigest: text,
  entries: listOf(record({
    name: text,
    sourceKey: text,
    file: text,
    begin: count,
    end: count,
    dtype: text,
    shape: listOf(count),
    deferred: flag,
  })),
  groups: listOf(record({
    groupId: text,
    members: count,
    appliedSteps: count,
    residency: optional(oneOf('host', 'device', 'offloaded')),
    residencyPolicy: optional(record({
      step: oneOf('host', 'device', 'offloaded'),
      idle: oneOf('host', 'device', 'offloaded'),
    })),
  })),
  warnings: listOf(record({
    code: text,
    subject: text,
    message: text,
  })),
};
export const planReport: Parser<PlanReport> = record(planReportFields);

/** Summary of a delta. */
export interface DeltaReport {
  /** Name given by its maker. */
  name: string;
  /** Digest of the weights that it leads from, in hex. */
  baseWeights: string;
  /** Digest of the weights that it leads to, in hex. */
  targetWeights: string;
  /** Names of the tensors that differ, ascending. */
  changed: string[];
}
export const deltaReportFields = {
  name: text,
  baseWeights: text,
  targetWeights: text,
  changed: listOf(text),
};
export const deltaReport: Parser<DeltaReport> = record(deltaReportFields);

/** One comparison, and its result. */
export interface VerificationCheck {
  /** Name: `receiptDigest`, `weights`, `optimizer`, `input:<file>`, `output:<file>`, … */
  name: string;
  /** Result of the comparison. */
  result: 'verified' | 'absent' | 'subset' | 'skipped' | 'differs';
  /** Value that the receipt states. */
  expected?: string | undefined;
  /** Value that was found instead. */
  found?: string | undefined;
}
export const checkFields = {
  name: text,
  result: oneOf('verified', 'absent', 'subset', 'skipped', 'differs'),
  expected: optional(text),
  found: optional(text),
};
export const check: Parser<VerificationCheck> = record(checkFields);

/** Result of verifying a receipt. */
export interface Verification {
  /** True if every output is present and nothing differs. Inputs may be elsewhere. */
  ok: boolean;
  /** All comparisons. */
  checks: VerificationCheck[];
}
export const verificationFields = {
  ok: flag,
  checks: listOf(check),
};
export const verification: Parser<Verification> = record(verificationFields);

/** Accuracy of an adapter that was extracted from two models. */
export interface ExtractReport {
  /** Rank of the factors. */
  rank: number;
  /** Error of all targets together. */
  error: number;
  /** Targets, by the names of their tensors. */
  tensors: Readonly<Record<string, {
    /** Length of the difference that the factors leave, divided by that of the whole difference; 0 if there is no difference. */
    error: number;
    /** Length of the difference. */
    norm: number;
  }>>;
  /** All other tensors: norms, biases, tables. */
  uncovered: Readonly<Record<string, {
    /** Length of its difference. */
    norm: number;
    /** Its share of the squared length of all differences. */
    share: number;
  }>>;
}
export const extractReportFields = {
  rank: count,
  error: number,
  tensors: tableOf(record({
    error: number,
    norm: number,
  })),
  uncovered: tableOf(record({
    norm: number,
    share: number,
  })),
};
export const extractReport: Parser<ExtractReport> = record(extractReportFields);
