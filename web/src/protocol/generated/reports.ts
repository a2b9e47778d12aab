// Made by npm run generate; not for editing.
/** Reports and errors of the core, under the names that it gives them for TypeScript. */
import { anything, count, document, flag, listOf, missing, nullable, number, oneOf, optional, record, tableOf, text } from '../parse.js';
import type { Parsed } from '../parse.js';

export const errorDetailFields = {
  /** Fixed dotted code, for example `safetensors.offset.overlap`. */
  code: optional(text),
  /** Path of the option or name of the file that is at fault. */
  path: optional(text),
  /** Reason why a file was refused. */
  refusal: optional(anything),
  /** All reasons why a file was refused; never empty. */
  refusals: optional(listOf(anything)),
  /** Number of bytes, tokens or other things that are needed. */
  need: optional(number),
  /** Number of them that there is. */
  have: optional(number),
  /** With LIMIT_EXCEEDED: name of the limit. */
  limit: optional(text),
  /** With MISSING_FEATURE: name of the feature. */
  feature: optional(text),
  /** With SHADER_FAILED: name of the kernel. */
  kernel: optional(text),
  /** Position in a file, in bytes. */
  offset: optional(count),
  /** With INTEGRITY: the digest that was expected. */
  want: optional(text),
  /** With INTEGRITY: the digest that was found. */
  got: optional(text),
  /** Reason that a browser or a server states. */
  reason: optional(text),
  /** The run that another tab holds. */
  run: optional(text),
  /** With CHECKPOINT_CORRUPT: number of the chunk. */
  chunk: optional(count),
  /** With NON_FINITE: the refused step; with a GPU fault: the last confirmed step. */
  step: optional(count),
  /** With NON_FINITE: `loss` or `"grad_norm"`. */
  tensor: optional(text),
  /** True if the call was abandoned and the trainer continues in another worker. */
  recovered: optional(flag),
};
/** Details of an error beyond its message: the dotted code, and the fields that belong to it. */
export const errorDetail = record(errorDetailFields);
export type ErrorDetail = Parsed<typeof errorDetail>;

export const stepFields = {
  /** Number of the step, counted from 1. */
  step: count,
  /** Number of passes over the data at the end of the step, in fractions. */
  epoch: number,
  /** Mean loss over the step's counted targets before the update, in nats. */
  loss: number,
  /** Global 2-norm of the gradients before clipping. */
  gradNorm: number,
  /** Learning rate of this step. */
  learningRate: number,
  /** Number of counted targets of this step. */
  tokens: count,
  /** Wall time of this step, in seconds. */
  secs: number,
};
/** Report of one optimizer step. */
export const step = record(stepFields);

export const evaluationFields = {
  /** Mean loss over counted targets, in nats. */
  loss: number,
  /** exp(loss), if f64 has such a number. */
  perplexity: optional(number),
  /** True if exp(loss) is beyond f64. */
  perplexityOverflow: optional(flag),
  /** Share of the counted targets that are the arg max of the logits, which greedy generation takes; among equal logits, the lowest id. */
  accuracy: number,
  /** Number of counted targets. */
  tokens: count,
};
/** Report of one evaluation. */
export const evaluation = record(evaluationFields);
export type EvalReport = Parsed<typeof evaluation>;

export const warningFields = {
  /** Stable dotted code. */
  code: text,
  /** Subject: names of parameters, or a file. */
  subject: optional(text),
  /** Description of what happened. */
  message: text,
};
/** Warning: something that the caller should know, although nothing was refused. */
export const warning = record(warningFields);
export type Finding = Parsed<typeof warning>;

export const tokenFields = {
  /** Token id. */
  id: count,
  /** Text that the token adds. */
  text: text,
  /** Natural logarithm of its probability under the model, before temperature and cuts. */
  logprob: number,
  /** The likeliest tokens, likeliest first. */
  top: listOf(record({
    /** Token id. */
    id: count,
    /** Text of the token. */
    text: text,
    /** Probability under the model, before temperature and cuts. */
    prob: number,
  })),
};
/** One generated token. */
export const token = record(tokenFields);
export type SampledToken = Parsed<typeof token>;

export const scoreFields = {
  /** All tokens. */
  tokens: listOf(record({
    /** Token id. */
    id: count,
    /** Text that the token adds in the middle of a text. */
    text: text,
    /** Natural logarithm of its probability after the tokens before it; absent for the first token. */
    logprob: optional(number),
    /** Rank among all tokens by probability, from 1; absent for the first token. */
    rank: optional(count),
    /** Likeliest tokens of this position, likeliest first. */
    top: listOf(record({
      /** Token id. */
      id: count,
      /** Text of the token. */
      text: text,
      /** Probability under the model, before temperature and cuts. */
      prob: number,
    })),
  })),
  /** Mean of −logprob over the tokens after the first, in nats; absent for a text of one token. */
  loss: optional(number),
  /** Warnings about the text or the conversation. */
  warnings: listOf(record({
    /** Stable dotted code. */
    code: text,
    /** Message of the warning, as a sentence. */
    message: text,
  })),
};
/** Tokens of a text with their probabilities. */
export const score = record(scoreFields);
export type Score = Parsed<typeof score>;

export const profileFields = {
  /** Steps that were timed. */
  steps: count,
  /** The clock that was used. */
  timing: oneOf('device', 'system'),
  /** Mean milliseconds of all kernels per step. */
  ms: number,
  /** Mean launches of the catalogue's kernels per step, by the counter of `dispatches`. */
  dispatches: number,
  /** Number of launches in all steps that were shorter than the resolution of the device's clock, and so have no time. */
  unmeasured: count,
  /** Most bytes of buffers in use on the device at once. */
  inUseBytes: count,
  /** Most bytes of the pages that its allocator had at once, used or not. */
  reservedBytes: count,
  /** The kernels, slowest first. */
  kernels: listOf(record({
    /** Its stem; for a kernel that Burn generated `Burn: ` and its type. */
    kernel: text,
    /** Mean launches per step. */
    launches: number,
    /** Mean milliseconds per step. */
    ms: number,
    /** Share of the time of all kernels, 0 to 1. */
    share: number,
  })),
};
/** Where the device's time of a step goes. */
export const profile = record(profileFields);
export type Profile = Parsed<typeof profile>;

export const gpuFields = {
  /** Name of the adapter. */
  adapter: text,
  /** Name and version of its driver; empty in browsers, which do not report it. */
  driver: text,
  /** `webgpu`, `vulkan`, `metal` or `dx12`. */
  backend: text,
  /** True for a CPU that runs shaders, which gets kernels of its own. */
  software: flag,
  /** Clock that was used; kernels that are shorter than its ticks are measured by the host's clock. */
  timing: oneOf('device', 'system'),
  /** Peak rate of chains of multiply-adds in f32, in 10⁹ floating point operations per second. */
  peakGflopPerSec: number,
  /** Rate of a copy in 10⁹ bytes per second, counting reads and writes. */
  copyGbPerSec: number,
  /** All kernels, those of the peak and the copy first. */
  kernels: listOf(record({
    /** Name of the computation. */
    name: text,
    /** Shape at which it was measured. */
    shape: text,
    /** True if that is the reference shape. Slow devices get a part of it. */
    whole: flag,
    /** File stems of the kernels that this device runs for it. */
    kernels: listOf(text),
    /** Duration of a pass in milliseconds. */
    ms: number,
    /** Rate in 10⁹ floating point operations of the formula per second; for arithmetic only. */
    gflopPerSec: optional(number),
    /** Rate in 10⁹ bytes per second, counting the bytes that have to be read and written, each value once. */
    gbPerSec: number,
    /** Speed as a fraction of the peak or of a copy, as `of` says. */
    fraction: number,
    /** Quantity that `fraction` refers to. */
    of: oneOf('peak', 'copy'),
    /** Number of times that one step of SmolLM2-135M computes it, if it is one of that step's products; 0 otherwise. */
    inStep: count,
  })),
};
/** Peak rates of a GPU, and how near the kernels come to them. */
export const gpu = record(gpuFields);
export type GpuReport = Parsed<typeof gpu>;

export const deviceFields = {
  /** Name of the adapter. */
  adapter: text,
  /** Name and version of the driver; empty if the adapter does not report it, as in browsers. */
  driver: text,
  /** `webgpu`, `vulkan`, `metal`, `dx12` or `cpu`. */
  backend: text,
  /** Limits that bound the size of tensors. */
  limits: record({
    /** Maximum size of a buffer. */
    maxBufferSize: count,
    /** Maximum size of the part of a buffer that can be bound to a kernel. */
    maxStorageBufferBindingSize: count,
  }),
};
/** Facts about an opened device. */
export const device = record(deviceFields);

export const fileTensorFields = {
  /** Name in the file, unchanged. */
  name: text,
  /** dtype: a word of safetensors, or `GGML:<type>`. */
  dtype: text,
  /** Row-major shape; empty for a scalar. The dimensions in a GGUF file are in the opposite order. */
  shape: listOf(count),
};
/** A tensor in the header of a file: its name, type and position. */
export const fileTensor = record(fileTensorFields);

export const tokenizerFields = {
  /** Kind of its model. */
  kind: oneOf('byte_pair_encoding', 'unigram', 'word_piece', 'word_level', 'characters'),
  /** Ids that end a text. */
  eos: listOf(count),
  /** True if it can format chats. */
  hasChatTemplate: flag,
};
/** Known facts about a tokenizer. */
export const tokenizer = record(tokenizerFields);

export const adapterInfoFields = {
  r: count,
  alpha: number,
  /** Names of the modules with factors. */
  targets: listOf(text),
  /** Number of trained values. */
  parameters: count,
  /** Size of these values on the device in bytes. */
  bytes: count,
};
/** Facts about an adapter. */
export const adapterInfo = record(adapterInfoFields);
export type AdapterInfo = Parsed<typeof adapterInfo>;

export const baseInfoFields = {
  name: text,
  format: text,
  files: listOf(record({
    name: text,
    bytes: count,
    sha256: optional(text),
    headerSha256: optional(text),
    /** SHA-256 of the sums of its pieces, if those are known: equal for equal files. */
    piecesSha256: optional(text),
  })),
  /** For an adapter run: number of the base's matrices on the device, by storage type. */
  storage: tableOf(count),
  /** For an adapter run: number of bytes of the base on the device. */
  bytes: count,
};
/** Facts about the model that a run started from. */
export const baseInfo = record(baseInfoFields);
export type BaseInfo = Parsed<typeof baseInfo>;

export const modelInfoFields = {
  architecture: text,
  parameters: count,
  tensors: listOf(record({
    name: text,
    dtype: text,
    shape: listOf(count),
  })),
  config: anything,
  vocabSize: count,
  tokenizer: nullable(tokenizer),
  sourceFormat: text,
  /** The separate adapter of the model, if it was opened with one. */
  adapter: nullable(adapterInfo),
  /** Warnings about the files. */
  warnings: listOf(warning),
};
/** Facts about a model. */
export const modelInfo = record(modelInfoFields);
export type ModelInfo = Parsed<typeof modelInfo>;

export const estimateFields = {
  /** Bytes in use at the peak of a step. */
  needBytes: count,
  parts: record({
    /** Trained weights of the model; 0 if an adapter is trained. */
    weights: count,
    /** Trained factors and modules of an adapter; 0 without one. */
    adapter: count,
    base: count,
    grads: count,
    optimizer: count,
    activations: count,
  }),
};
/** Device memory that a run needs. */
export const estimate = record(estimateFields);

export const rowPlaceFields = {
  /** Index of the file in the report. */
  file: count,
  /** Line at which the row begins, counted from 1. */
  line: count,
  /** Number of the row in its file, counted from 1. */
  row: count,
};
/** A row of a file. */
export const rowPlace = record(rowPlaceFields);

export const dataWarningFields = {
  /** Stable dotted code. */
  code: text,
  /** Number of occurrences. */
  count: count,
  /** First rows concerned. */
  rows: listOf(rowPlace),
  /** Message of the warning, as a sentence. */
  message: text,
};
/** Warning about data that was not refused. */
export const dataWarning = record(dataWarningFields);

export const dataReportFields = {
  /** Report on each file. */
  files: listOf(record({
    /** Name of the file. */
    name: text,
    /** Form that was detected or given. */
    form: oneOf('text', 'jsonl', 'json', 'csv', 'tsv', 'tokens'),
    /** Number of rows; null for a stream of text or ids. */
    rows: nullable(count),
  })),
  /** Number of rows of each kind: chat, completion, text, tokens. */
  shapes: tableOf(count),
  /** Number of chats by the method that found their learned tokens: generation, prefix, per-answer, all. */
  rules: tableOf(count),
  /** Number of examples that are trained on; 0 for a stream. */
  examples: count,
  /** Number of examples, or of tokens of a stream, that are kept for evaluation. */
  validation: count,
  /** Token counts of the training part. */
  tokens: record({
    /** Number of tokens in the training part. */
    total: count,
    /** Number of these that are learned. */
    learned: count,
  }),
  /** Lengths of the training examples; null for a stream. */
  lengths: nullable(record({
    /** Minimum. */
    min: count,
    /** Median. */
    p50: count,
    /** 95th percentile: 95 % of the examples are not longer. */
    p95: count,
    /** Maximum. */
    max: count,
    /** Number of examples by length, from 0 to the maximum in equal steps of `histogramStep` tokens. */
    histogram: listOf(count),
    /** Number of tokens from one bar of the histogram to the next. */
    histogramStep: count,
  })),
  /** Number of tokens in a sequence, T. */
  seqLen: count,
  /** Number of examples whose end is left out. */
  cut: count,
  /** Number of examples that are left out: too long by `onLong`, or without a learned token within `seqLen`. */
  skipped: count,
  /** Number of sequences in an epoch. */
  windows: count,
  /** Share of the positions of these sequences that hold tokens. */
  packedFraction: number,
  /** Number of steps in an epoch; the last one may continue into the next epoch. */
  stepsPerEpoch: count,
  /** Tokens that end a text or a turn. */
  end: listOf(text),
  /** Warnings about the data. */
  warnings: listOf(dataWarning),
  /** SHA-256 of the examples, or of the stream. */
  digest: text,
};
/** Report on training data as they are learned. */
export const dataReport = record(dataReportFields);
export type DataReport = Parsed<typeof dataReport>;

export const previewFields = {
  /** Place of its row; null for the beginning of a stream. */
  row: nullable(rowPlace),
  /** Its tokens, in runs of learned tokens and runs of tokens that are only read. */
  segments: listOf(record({
    /** Text of the tokens. */
    text: text,
    /** The tokens. */
    tokens: listOf(record({
      /** Id of the token. */
      id: count,
      /** Text of the token; the replacement character represents parts of a character. */
      text: text,
    })),
    /** True if they are targets of the loss. */
    learned: flag,
  })),
};
/** A training example, or the beginning of a stream. */
export const preview = record(previewFields);

export const dataPreview = listOf(preview);
export type DataPreview = Parsed<typeof dataPreview>;

export const fileSummaryFields = {
  /** Name of the file. */
  name: text,
  /** Form that was detected or given. */
  form: oneOf('text', 'jsonl', 'json', 'csv', 'tsv', 'tokens'),
  /** Number of rows; null for a stream of text or ids. */
  rows: nullable(count),
  /** Number of rows of each kind: chat, completion, text, tokens, and faulty. */
  shapes: tableOf(count),
  /** Keys of the rows, in the order of their first occurrence; at most 50. */
  columns: listOf(text),
  /** Number of characters of a text or of rows, or of ids of token ids. */
  characters: count,
  /** Warnings about the file itself. */
  warnings: listOf(dataWarning),
};
/** Summary of a file, as far as it is known without a tokenizer. */
export const fileSummary = record(fileSummaryFields);
export type FileSummary = Parsed<typeof fileSummary>;

export const fileSummaries = listOf(fileSummary);

export const dataInspectionFields = {
  /** Report on the data. */
  report: dataReport,
  /** The first examples. */
  preview: listOf(preview),
};
/** Report on how data are learned, with the first examples. */
export const dataInspection = record(dataInspectionFields);
export type DataInspection = Parsed<typeof dataInspection>;

export const sessionFields = {
  /** Number of steps that are complete. */
  completedSteps: count,
  /** Number of steps of the whole run. */
  totalSteps: count,
  /** Settings of the run. */
  config: anything,
  /** The model that is trained. */
  model: modelInfo,
  /** The adapter that is trained in place of the weights, if there is one. */
  adapter: nullable(adapterInfo),
  /** Files that the run started from; a new model has none. */
  base: nullable(baseInfo),
  /** Number of tokens in the training data. */
  dataTokens: count,
  /** Report on the training data and how they are learned. */
  data: dataReport,
  /** Bytes that are reserved on the device, if it reports them. */
  gpuBytes: optional(count),
  /** Tensors that APOLLO leaves to AdamW: embeddings and head unless also projected, vectors, and those with a shorter side of at most the rank. */
  fallbacks: listOf(text),
  /** Step after which a decay or an annealing begins, if one is planned or has begun. */
  scheduleStart: optional(count),
  /** Current learning rate, if it was set manually. */
  manualLearningRate: optional(number),
  /** Warnings about settings, data and what a resume dropped or changed. */
  warnings: listOf(warning),
};
/** Facts about a run. */
export const session = record(sessionFields);

export const advancedFields = {
  /** Number of steps that are complete. */
  completedSteps: count,
  /** Reports of steps. */
  reports: listOf(step),
};
/** Progress of a run after a call, and the reports that arrived during it. */
export const advanced = record(advancedFields);

export const tokenizedFields = {
  /** The ids, without special tokens. */
  ids: listOf(count),
  /** Warnings about the text. */
  warnings: listOf(record({
    /** Stable dotted code. */
    code: text,
    /** Message of the warning, as a sentence. */
    message: text,
  })),
};
/** Ids of a text, and warnings about it. */
export const tokenized = record(tokenizedFields);

export const fileInfoFields = {
  /** File name, without a path. */
  name: text,
  /** Size in bytes. */
  bytes: count,
};
/** Name and size of a file of a stream. */
export const fileInfo = record(fileInfoFields);

export const exportChoiceFields = {
  /** Format of the export. */
  format: oneOf('safetensors', 'gguf', 'json', 'peft', 'gguf-adapter'),
  /** Types of the matrices of a GGUF file, or the dtype that must be requested for a folder. */
  type: optional(text),
  /** True if the export is possible. */
  ok: flag,
  /** Total size of the files, including the receipt. */
  bytes: optional(count),
  /** Parts of the model that are lost. */
  lossy: optional(text),
  /** `base` if the files that the model came from must be given again. */
  needs: optional(oneOf('base')),
  /** Reason if it is not possible. */
  reason: optional(text),
};
/** One way of exporting a model, planned as far as that needs no values. */
export const exportChoice = record(exportChoiceFields);
export type ExportChoice = Parsed<typeof exportChoice>;

export const modelDetailsFields = {
  exports: listOf(exportChoice),
  /** Parts of the model that import, export and a round trip preserve, for every format that a model can take. */
  contract: optional(document),
  /** Receipt of the import, for a model that was opened. */
  receipt: optional(document),
  /** Files that training starts from, with their checksums. */
  base: optional(document),
};
/** Facts about a model other than its weights. */
export const modelDetails = record(modelDetailsFields);
export type ModelDetails = Parsed<typeof modelDetails>;

export const refusalFields = {
  /** Stable dotted code, for example `safetensors.offset.overlap`. */
  code: text,
  /** Stage that the file reached: `open`, `bind` or `read`. */
  stage: text,
  /** Name of the file, escaped. */
  artifact: text,
  /** Tensor, key or shard, escaped and shortened. */
  subject: optional(text),
  /** Expected value. */
  expected: optional(text),
  /** Value that was found. */
  found: optional(text),
  /** Suggestion for the user. */
  hint: optional(text),
  /** Offset in the file, in bytes. */
  byte_offset: optional(count),
};
/** Reason for which a file was refused (crate/FORMATS.md, "Refusals"). */
export const refusal = record(refusalFields);

export const fileReportFields = {
  /** Name of the file, escaped. */
  file: text,
  /** Format as which the file was read. */
  format: missing(oneOf('safetensors', 'gguf', 'index', 'peft', 'json')),
  /** True if nothing was refused. */
  ok: flag,
  /** Code of the refusal. */
  code: optional(text),
  /** `ok`, or the stage of the refusal: `open`, `bind`, `read`. */
  stage: text,
  /** Tensor, key or shard that was refused. */
  subject: optional(text),
  /** Value that was found there. */
  found: optional(text),
  /** Message of the refusal or error. */
  message: optional(text),
  /** Unusual but allowed properties of the file. */
  warnings: listOf(record({
    /** Stable dotted word. */
    code: text,
    /** Tensor, key or shard, escaped and shortened. */
    subject: text,
  })),
  /** Number of NaN and infinite values by tensor; present only after reading, and only for tensors that have any. */
  non_finite: optional(tableOf(count)),
  /** Number of tensors. */
  tensors: count,
  /** List of the tensors. */
  inventory: listOf(fileTensor),
};
/** Verdict on a file. */
export const fileReport = record(fileReportFields);
export type FileReport = Parsed<typeof fileReport>;

export const inspectionFields = {
  /** Kind of the files. */
  kind: oneOf('model', 'adapter', 'optimizer', 'state', 'checkpoint', 'unknown'),
  /** List of the tensors; those of a model have Hugging Face's names. */
  tensors: listOf(fileTensor),
  /** Shape of the model. */
  config: anything,
  /** Tokenizer of the model. */
  tokenizer: optional(tokenizer),
  /** The weight files with their checksums. */
  base: optional(document),
  /** Contract that states what import, export and a round trip preserve. */
  contract: optional(document),
  /** Formats that it can be exported to. */
  exports: listOf(exportChoice),
  /** Verdict on training it. */
  trainable: record({
    /** True if the model can be trained. */
    ok: flag,
    /** Reason if it cannot be trained. */
    reason: optional(text),
    /** Every update rule in both precisions. */
    options: listOf(record({
      /** Public name of the update rule. */
      optimizer: text,
      /** Storage of weight matrices and moments. */
      precision: oneOf('f32', 'bf16'),
      /** Peak number of bytes on the device during a step of one sequence. */
      bytes: count,
    })),
  }),
  /** All faults of the files together. */
  refusals: listOf(refusal),
  /** Unusual but allowed properties of the files. */
  warnings: listOf(record({
    /** Stable dotted word. */
    code: text,
    /** Tensor, key or file. */
    subject: text,
    /** Message of the warning. */
    message: text,
  })),
};
/** Description of files: their kind, and their possible uses. */
export const inspection = record(inspectionFields);

export const planReportFields = {
  /** Container of the files. */
  sourceFormat: text,
  /** Digest of the request, the headers and the entries, in hex: equal plans have equal digests. */
  planDigest: text,
  /** Tensors that are taken, ascending by their new names. */
  entries: listOf(record({
    /** New name. */
    name: text,
    /** Name in the files. */
    sourceKey: text,
    /** Name of its file. In a JSON state dict a tensor has no position. */
    file: text,
    /** Position of its first byte in the file. */
    begin: count,
    /** Position one past its last byte. */
    end: count,
    /** dtype as stored. */
    dtype: text,
    /** Row-major shape. */
    shape: listOf(count),
    /** True if its values have not been read. */
    deferred: flag,
  })),
  /** Groups whose optimizer state is taken with them, in their order. */
  groups: listOf(record({
    /** Name of the group. */
    groupId: text,
    /** Number of its parameters. */
    members: count,
    /** Number of steps that were applied to it. */
    appliedSteps: count,
    /** Residency of its state when it was saved, if that is stated. */
    residency: optional(oneOf('host', 'device', 'offloaded')),
    /** Intended residency of its state, if that is stated. */
    residencyPolicy: optional(record({
      /** Residency during a step. */
      step: oneOf('host', 'device', 'offloaded'),
      /** Residency between steps. */
      idle: oneOf('host', 'device', 'offloaded'),
    })),
  })),
  /** Unusual but allowed properties of the files and the request. */
  warnings: listOf(record({
    /** Stable dotted word. */
    code: text,
    /** Tensor, key or file. */
    subject: text,
    /** Message of the warning. */
    message: text,
  })),
};
/** Plan of an import: the tensors that it takes, and where their bytes are. */
export const planReport = record(planReportFields);
export type PlanReport = Parsed<typeof planReport>;

export const deltaReportFields = {
  /** Name given by its maker. */
  name: text,
  /** Digest of the weights that it leads from, in hex. */
  baseWeights: text,
  /** Digest of the weights that it leads to, in hex. */
  targetWeights: text,
  /** Names of the tensors that differ, ascending. */
  changed: listOf(text),
};
/** Summary of a delta. */
export const deltaReport = record(deltaReportFields);
export type DeltaReport = Parsed<typeof deltaReport>;

export const checkFields = {
  /** Name: `receiptDigest`, `weights`, `optimizer`, `input:<file>`, `output:<file>`, … */
  name: text,
  /** Result of the comparison. */
  result: oneOf('verified', 'absent', 'subset', 'skipped', 'differs'),
  /** Value that the receipt states. */
  expected: optional(text),
  /** Value that was found instead. */
  found: optional(text),
};
/** One comparison, and its result. */
export const check = record(checkFields);

export const verificationFields = {
  /** True if every output is present and nothing differs. Inputs may be elsewhere. */
  ok: flag,
  /** All comparisons. */
  checks: listOf(check),
};
/** Result of verifying a receipt. */
export const verification = record(verificationFields);
export type Verification = Parsed<typeof verification>;

export const extractReportFields = {
  /** Rank of the factors. */
  rank: count,
  /** Error of all targets together. */
  error: number,
  /** Targets, by the names of their tensors. */
  tensors: tableOf(record({
    /** Length of the difference that the factors leave, divided by that of the whole difference; 0 if there is no difference. */
    error: number,
    /** Length of the difference. */
    norm: number,
  })),
  /** All other tensors: norms, biases, tables. */
  uncovered: tableOf(record({
    /** Length of its difference. */
    norm: number,
    /** Its share of the squared length of all differences. */
    share: number,
  })),
};
/** Accuracy of an adapter that was extracted from two models. */
export const extractReport = record(extractReportFields);
