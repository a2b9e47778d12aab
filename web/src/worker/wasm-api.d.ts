/** The interface of the Rust core (`crate/src/web_api`) for the worker. Reports are parsed in `wasm.ts`, so they are `unknown` here. */
export default function init(options?: { module_or_path: BufferSource | URL | string }): Promise<unknown>;
export interface JsSource {
  name: string;
  size: number;
  read(offset: number, length: number): Uint8Array;
  /** The SHA-256 of each piece of 8 MiB, where they are known. */
  pieces?: string[];
  /** Where it can be had again without asking, for the worker. */
  origin?: FileSystemFileHandle | string | undefined;
}
/** Data of a run; tokens that are too many for memory go to `storage`. */
export interface JsData {
  files: JsSource[];
  validation: JsSource[];
  /** Names of entries of folders that are not read. */
  passedOver?: string[];
  storage?: { append(bytes: Uint8Array): number; read(offset: number, length: number): Uint8Array } | undefined;
}
export function version(): string;
/** Receives the message of a panic, before its trap. */
export function setPanicHook(onPanic: (message: string) => void): void;
/** Sets a flag that long calls check between micro-batches, batches, tokens, tensors and pieces, and then reject with `call.aborted`. */
export function requestAbort(): void;
export function clearAbort(): void;
/** The report of `tabtune inspect --json` on one file; an index finds its shards among the siblings. */
export function inspectFile(file: JsSource, format: string | undefined, read: boolean, siblings?: JsSource[]): unknown;
/** What the files are together, and what can be done with them (`ModelInspection`): from headers alone, and never a throw for what is refused of them. */
export function inspectModel(files: JsSource[], requestJson: string | undefined, adapter: JsSource[]): unknown;
/** Recomputes what a receipt states of these files; without `receiptJson` it is the `tabtune.receipt.json` among them. */
export function verifyFiles(files: JsSource[], receiptJson: string | undefined): unknown;
/** The adapter that comes closest to the difference of two models; `onProgress` is told how many values were read, of how many. */
export function extractAdapter(tuned: JsSource[], base: JsSource[], optionsJson: string, onProgress: (done: number, total: number) => void): Promise<{ report: unknown; warnings: unknown; stream: FileStream }>;
export function initDevice(): Promise<unknown>;
/** What the GPU does (`GpuReport`); `timestamps` says whether it has them, `onProgress` is told how many kernels were measured, of how many. */
export function measureGpu(timestamps: boolean, onProgress: (done: number, total: number) => void): Promise<unknown>;
/** What data are, without a model (`FileSummary[]`); `configJson` says how they are read. Of the `partial` beginning of a file the last row is left out. */
export function inspectData(data: JsData, configJson: string, partial: boolean): unknown;
export class ModelHandle {
  private constructor();
  /** `adapter`: the files of a LoRA adapter that is merged as the weights are read, with larger tables if it may `resize`, or stays `apart`; empty is none. */
  static open(files: JsSource[], requestJson: string | undefined, adapter: JsSource[], apart: boolean, resize: boolean): ModelHandle;
  static fromScratch(configJson: string, tokenizer: 'characters' | { tokenizerJson: Uint8Array }, data: JsData, settingsJson: string, partial: boolean): ModelHandle;
  /** What a run with these settings would learn, with its first `show` examples (`DataInspection`). */
  inspectData(data: JsData, configJson: string, partial: boolean, show: number): Promise<unknown>;
  /** The examples of data, whole and token by token (`DataPreview`). */
  rows(data: JsData, configJson: string): Promise<unknown>;
  info(): unknown;
  /** `{ exports, contract, receipt, base }`. */
  details(): unknown;
  /** `{ name, dtype, shape, values }` of one tensor, widened to f32. */
  tensor(name: string): unknown;
  /** Files of the model in another form; `base`: the GGUF files that a patch replaces tensors of. */
  exportModel(optionsJson: string, base: JsSource[]): Promise<FileStream>;
  tokenize(text: string): Uint32Array;
  detokenize(ids: Uint32Array): string;
  /** Puts the weights on the device, to be asked. */
  load(): Promise<LoadedModel>;
  free(): void;
}
/** The weights of an open model on the device. */
export class LoadedModel {
  private constructor();
  /** `conversationJson`: `messages`, and `tools`, `documents`, `chat_template_kwargs`. With `base` the base answers, without the adapter beside it. */
  chat(conversationJson: string, optionsJson: string, base: boolean): Promise<TokenStream>;
  /** Of `{ text }`, `{ ids }` or `{ conversation, generation }`, with `options`. */
  score(requestJson: string, base: boolean): Promise<unknown>;
  free(): void;
}
export function previewSchedule(configJson: string, points: number, stride: number): Float64Array;
export function estimate(model: ModelHandle, configJson: string): unknown;
export class Session {
  private constructor();
  static create(model: ModelHandle, data: JsData, configJson: string, allowNonFinite: boolean): Promise<Session>;
  /** `base`: the files beside which an adapter is trained; empty for other runs. With `header` only its headers are compared. */
  static resume(files: JsSource[], data: JsData, changesJson: string | undefined, overrides: string[], base: JsSource[], header: boolean): Promise<Session>;
  /** The first `show` examples token by token (`DataPreview`). */
  dataPreview(show: number): unknown;
  /** The same of other data, as the run reads its own but for the settings given. */
  rows(data: JsData, configJson: string): Promise<unknown>;
  step(): Promise<unknown>;
  /** Waits for the steps that were submitted; the next `step` throws the refusal of one. */
  settle(): Promise<unknown>;
  skipBatch(): void;
  startProfile(): void;
  finishProfile(): unknown;
  /** Throws if there is nothing to evaluate on. */
  checkEvaluation(): void;
  evaluate(maxBatches?: number): Promise<unknown>;
  generate(prompt: string, optionsJson: string): TokenStream;
  /** As of `LoadedModel`, with the weights as they are now. */
  chat(conversationJson: string, optionsJson: string, base: boolean): Promise<TokenStream>;
  score(requestJson: string, base: boolean): Promise<unknown>;
  detokenize(ids: Uint32Array): string;
  setLearningRate(rate: number | undefined): void;
  startDecay(): void;
  previewSchedule(points: number, stride: number): Float64Array;
  info(): unknown;
  /** Reads one element back: resolves when everything submitted before is done, or rejects. */
  confirm(): Promise<void>;
  checkpoint(adapter: string): FileStream;
  /** As `ModelHandle.details`, of the weights as they are now. */
  details(): unknown;
  exportModel(optionsJson: string, base: JsSource[]): Promise<FileStream>;
  free(): void;
}
export class TokenStream {
  private constructor();
  next(): Promise<unknown>;
  /** Number of tokens of the prompt that an answer before has computed, and of those that the first token computes. */
  promptTokens(): Uint32Array;
  /** Why the text ended; `undefined` while it goes on. */
  end(): string | undefined;
  free(): void;
}
export class FileStream {
  private constructor();
  files(): unknown;
  /** One piece of 8 MiB of one file, its last one shorter. */
  nextChunk(): Promise<Uint8Array | undefined>;
  /** The SHA-256 of the next piece, in order; `checkpoint.json`, the last file, holds them. */
  hashed(sha256: string): void;
  /** After the last piece: what was written, of what and how. Checkpoints have none. */
  receipt(): unknown;
  free(): void;
}
