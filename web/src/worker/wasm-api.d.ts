/** The interface of the Rust core (`web/core`) for the worker. Reports are parsed in `wasm.ts`, so they are `unknown` here. */
/** Loads the core; `fetched` requests a file by its address, if the core is not given as a module or as bytes. */
export default function init(options: {
  module_or_path: WebAssembly.Module | BufferSource | URL | string | undefined;
  fetched: (address: URL | string) => Promise<Response>;
}): Promise<unknown>;
export interface JsSource {
  name: string;
  size: number;
  /** Returns the bytes of a range, which are valid until the next call of `ahead`. */
  read(offset: number, length: number): Uint8Array;
  /** Fetches what follows the last read; returns `undefined` if there is nothing to wait for. */
  ahead?: () => Promise<void> | undefined;
  /** SHA-256 of each piece of 8 MiB, if they are known. */
  pieces?: string[];
  /** Location from which the worker can open the source again without asking. */
  origin?: FileSystemFileHandle | string | undefined;
  /** Warning about how the source was served. */
  warning?: { code: string; message: string } | undefined;
}
/** Data of a run; tokens that are too many for memory go to `storage`. */
export interface JsData {
  files: JsSource[];
  validation: JsSource[];
  /** Names of folder entries that are not read. */
  passedOver?: string[];
  storage?:
    | { append(bytes: Uint8Array): number; read(offset: number, length: number): Uint8Array }
    | undefined;
}
export function version(): string;
/** Returns the compiled module of this core. */
export function compiled(): WebAssembly.Module;
/** Sets the function that receives the message of a panic, before its trap. */
export function setPanicHook(onPanic: (message: string) => void): void;
/** Sets a flag that long calls check between micro-batches, batches, tokens, tensors and pieces; they then reject with `call.aborted`. */
export function requestAbort(): void;
export function clearAbort(): void;
/** Returns the report of `tabtune inspect --json` on one file; an index finds its shards among the siblings. */
export function inspectFile(
  file: JsSource,
  format: string | undefined,
  read: boolean,
  siblings?: JsSource[],
): unknown;
/** Returns what the files form together and what can be done with them (`ModelInspection`), from headers alone; refusals are reported, not thrown. */
export function inspectModel(
  files: JsSource[],
  requestJson: string | undefined,
  adapter: JsSource[],
): unknown;
/** Recomputes the statements of a receipt about these files; without `receiptJson` it is the `tabtune.receipt.json` among them. */
export function verifyFiles(files: JsSource[], receiptJson: string | undefined): unknown;
/** Extracts the adapter closest to the difference of two models; `onProgress` receives the number of values read, and their total. */
export function extractAdapter(
  tuned: JsSource[],
  base: JsSource[],
  optionsJson: string,
  onProgress: (done: number, total: number) => void,
): Promise<{ report: unknown; warnings: unknown; stream: FileStream }>;
export function initDevice(): Promise<unknown>;
/** Measures the GPU (`GpuReport`); `timestamps` says if it supports them, `onProgress` receives the number of kernels measured, and their total. */
export function measureGpu(
  timestamps: boolean,
  onProgress: (done: number, total: number) => void,
): Promise<unknown>;
/**
 * Summarises data without a model (`FileSummary[]`); `configJson` determines how they are read. If a file is only a `partial` beginning, its last row
 * is left out.
 */
export function inspectData(data: JsData, configJson: string, partial: boolean): Promise<unknown>;
export class ModelHandle {
  private constructor();
  /**
   * Opens a model. `adapter` contains the files of a LoRA adapter, or is empty. It is merged as the weights are read, with larger tables if `resize`,
   * or stays separate if `apart`.
   */
  static open(
    files: JsSource[],
    requestJson: string | undefined,
    adapter: JsSource[],
    apart: boolean,
    resize: boolean,
  ): ModelHandle;
  static fromScratch(
    configJson: string,
    tokenizer: 'characters' | { tokenizerJson: Uint8Array },
    data: JsData,
    settingsJson: string,
    partial: boolean,
  ): Promise<ModelHandle>;
  /** Returns what a run with these settings would learn, with its first `show` examples (`DataInspection`). */
  inspectData(data: JsData, configJson: string, partial: boolean, show: number): Promise<unknown>;
  /** Returns all examples of the data, token by token (`DataPreview`). */
  rows(data: JsData, configJson: string): Promise<unknown>;
  info(): unknown;
  /** Returns `{ exports, contract, receipt, base }`. */
  details(): unknown;
  /** Returns `{ name, dtype, shape, values }` of one tensor, widened to f32. */
  tensor(name: string): unknown;
  /** Exports the model in another format; `base` contains the GGUF files in which a patch replaces tensors. */
  exportModel(optionsJson: string, base: JsSource[]): Promise<FileStream>;
  /** Returns `{ ids, warnings }`. */
  tokenize(text: string): unknown;
  detokenize(ids: Uint32Array): string;
  /** Loads the weights onto the device, for generation and scoring. */
  load(): Promise<LoadedModel>;
  free(): void;
}
/** Weights of an open model on the device. */
export class LoadedModel {
  private constructor();
  /**
   * Generates an answer. `conversationJson` has `messages`, and optionally `tools`, `documents`, `chat_template_kwargs`. With `base` the base model
   * answers, without its adapter.
   */
  chat(conversationJson: string, optionsJson: string, base: boolean): Promise<TokenStream>;
  /** Scores `{ text }`, `{ ids }` or `{ conversation, generation }`, with `options`. */
  score(requestJson: string, base: boolean): Promise<unknown>;
  free(): void;
}
export function previewSchedule(configJson: string, points: number, stride: number): Float64Array;
export function estimate(model: ModelHandle, configJson: string): unknown;
export class Session {
  private constructor();
  static create(
    model: ModelHandle,
    data: JsData,
    configJson: string,
    allowNonFinite: boolean,
  ): Promise<Session>;
  /**
   * Resumes a run. `base` contains the base files of the adapter that is trained, and is empty for other runs. With `header` only their headers are
   * compared.
   */
  static resume(
    files: JsSource[],
    data: JsData,
    changesJson: string | undefined,
    overrides: string[],
    base: JsSource[],
    header: boolean,
  ): Promise<Session>;
  /** Returns the first `show` examples token by token (`DataPreview`). */
  dataPreview(show: number): unknown;
  /** Returns the examples of other data, read as the run reads its own except for the given settings. */
  rows(data: JsData, configJson: string): Promise<unknown>;
  step(): Promise<unknown>;
  /** Waits for the submitted steps; if one was refused, the next `step` throws the refusal. */
  settle(): Promise<unknown>;
  skipBatch(): void;
  startProfile(): void;
  finishProfile(): unknown;
  /** Throws if there are no data to evaluate on. */
  checkEvaluation(): void;
  evaluate(maxBatches?: number): Promise<unknown>;
  generate(prompt: string, optionsJson: string): TokenStream;
  /** Like `LoadedModel.chat`, with the current weights. */
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
  /** Like `ModelHandle.details`, for the current weights. */
  details(): unknown;
  exportModel(optionsJson: string, base: JsSource[]): Promise<FileStream>;
  free(): void;
}
export class TokenStream {
  private constructor();
  next(): Promise<unknown>;
  /** Returns the warnings about the prompt or the conversation. */
  warnings(): unknown;
  /** Returns the number of prompt tokens that an earlier answer has computed, and the number that the first token computes. */
  promptTokens(): Uint32Array;
  /** Returns the reason why the text ended; `undefined` while it continues. */
  end(): string | undefined;
  free(): void;
}
export class FileStream {
  private constructor();
  files(): unknown;
  /** Returns one piece of 8 MiB of one file; the last piece of a file is shorter. */
  nextChunk(): Promise<Uint8Array | undefined>;
  /** Receives the SHA-256 of the next piece, in order; `checkpoint.json`, the last file, contains them. */
  hashed(sha256: string): void;
  /** Returns the receipt after the last piece: the files written, their source and method. Checkpoints have none. */
  receipt(): unknown;
  free(): void;
}
