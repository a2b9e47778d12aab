// Made by npm run generate; not for editing.
/* eslint-disable */
/** The interface of the Rust core (`web/core`) for the worker. Reports are parsed in `wasm.ts`, so they are `unknown` here. */

/** A file that the core reads. */
export interface JsSource {
    name: string;
    size: number;
    /** Returns the bytes of a range, which are valid until the next call of `ahead`. */
    read(offset: number, length: number): Uint8Array;
    /** Fetches what follows the last read; returns `undefined` if there is nothing to wait for. */
    ahead?: () => Promise<void> | undefined;
    /** SHA-256 of each piece of 8 MiB, if they are known. */
    pieces?: string[];
    /** Repository that it came from. */
    hub?: { repo: string; revision: string; commit: string; page: string } | undefined;
    /** Location from which the worker can open the source again without asking. */
    origin?: FileSystemFileHandle | string | undefined;
    /** Warning about how the source was served. */
    warning?: { code: string; message: string } | undefined;
}

/** Storage of tokens; `append` returns the offset of the bytes. */
export interface JsStorage {
    append(bytes: Uint8Array): number;
    read(offset: number, length: number): Uint8Array;
}

/** Data of a run; tokens that are too many for memory go to `storage`. */
export interface JsData {
    files: JsSource[];
    validation: JsSource[];
    /** Names of folder entries that are not read. */
    passedOver?: string[];
    storage?: JsStorage | undefined;
}

/** Settings, options or a document, under Rust's names. */
export type Values = Readonly<Record<string, unknown>>;

/**
 * Stream of files: names and sizes first, then the bytes in order.
 */
export class FileStream {
    private constructor();
    free(): void;
    /**
     * Returns `{ name, bytes }` of each file.
     */
    files(): unknown;
    /**
     * Receives the SHA-256 of the next piece that was given, in hex and in order. The digests of all earlier files must be given before
     * the first piece of checkpoint.json is requested; an export does not need them.
     */
    hashed(sha256: string): void;
    /**
     * Returns the next piece: 8 MiB of one file, or less at the end of a file; undefined at the end.
     */
    nextChunk(): Promise<Uint8Array | undefined>;
    /**
     * Returns the receipt, after the last piece; undefined before, and for a stream without one.
     */
    receipt(): unknown;
}

/**
 * Weights of an open model on the device.
 */
export class LoadedModel {
    private constructor();
    free(): void;
    /**
     * Answers a conversation: a list of messages, or an object with `messages`, `tools`, `documents` and `chat_template_kwargs` →
     * `TokenStream`. With `base`, the base answers, without the attached adapter.
     */
    chat(conversation: Values, options: Values, base: boolean): Promise<TokenStream>;
    /**
     * Returns the `Score` of `{ text }`, `{ ids }` or `{ conversation, generation }`, with `options` of `ScoreConfig`; `base` is as in
     * `chat`.
     */
    score(request: Values, base: boolean): Promise<unknown>;
}

/**
 * Model to be trained. Clones share its files.
 */
export class ModelHandle {
    private constructor();
    free(): void;
    /**
     * Returns the `ModelDetails`, which are empty for a new model without files. A model with an attached adapter cannot be exported.
     */
    details(): unknown;
    /**
     * Returns the text of token ids.
     */
    detokenize(ids: Uint32Array | number[]): string;
    /**
     * Writes the model to files in another format; `base` are the GGUF files in which a patch replaces tensors.
     */
    exportModel(options: Values, base: JsSource[]): Promise<FileStream>;
    /**
     * Creates a new model from a Hugging Face style configuration. Without a `tokenizer`, the text of a tokenizer.json,
     * its tokens are the characters of the texts in `data`, which are read as `settings` say and may be the beginnings
     * of `partial` files.
     */
    static fromScratch(config: Values, tokenizer: Uint8Array | number[] | null | undefined, data: JsData, settings: Values, partial: boolean): Promise<ModelHandle>;
    /**
     * Returns the `ModelInfo`.
     */
    info(): unknown;
    /**
     * Reports what a run with these settings would learn from the data, with its first `show` examples → `DataInspection`. Nothing is
     * trained.
     */
    inspectData(data: JsData, config: Values, partial: boolean, show: number): Promise<unknown>;
    /**
     * Puts the weights on the device, to generate and score text → `LoadedModel`. A new model has no weights and is refused; a model that
     * does not fit is refused before anything is uploaded.
     */
    load(): Promise<LoadedModel>;
    /**
     * Opens one GGUF file or the files of a Hugging Face folder, of which a request may take a part. A given adapter is merged into the
     * model, where its larger tables may `resize` the vocabulary, or attached to it if it stays `apart`. `template` is a chat template to use
     * instead of the model's.
     */
    static open(files: JsSource[], request: Values | null | undefined, adapter: JsSource[], apart: boolean, resize: boolean, template?: string | null): ModelHandle;
    /**
     * Returns the learning rates that a new run on this model plans for every `stride`-th step from the first, `points` of them. Without
     * `steps` among its settings, they are its whole length.
     */
    previewSchedule(config: Values, points: number, stride: number): Float64Array;
    /**
     * Returns the examples of the data, read with these settings and whole, token by token → `DataPreview`.
     */
    rows(data: JsData, config: Values): Promise<unknown>;
    /**
     * Returns `{ name, dtype, shape, values }` of one tensor, widened to f32.
     */
    tensor(name: string): unknown;
    /**
     * Returns the ids of `text` and the warnings about it, as `{ ids, warnings }`; no special tokens are added.
     */
    tokenize(text: string): unknown;
}

/**
 * A trainer with its tokenizer.
 */
export class Session {
    private constructor();
    free(): void;
    /**
     * Answers a conversation, as `LoadedModel.chat` does, with the weights at the time of each token.
     */
    chat(conversation: Values, options: Values, base: boolean): Promise<TokenStream>;
    /**
     * Checks that the run has data to evaluate on.
     */
    checkEvaluation(): void;
    /**
     * Writes the files of a checkpoint of the current state; `adapter` is the name of the GPU adapter.
     */
    checkpoint(adapter: string): FileStream;
    /**
     * Resolves when all work submitted before is done.
     */
    confirm(): Promise<void>;
    /**
     * Starts a run. The caller keeps `model`, to try again after a refusal. Weights that are NaN or infinite are refused
     * unless they are allowed. Files of a `state` are continued (`RunState`); `overrides` names the settings that may contradict it.
     */
    static create(model: ModelHandle, data: JsData, config: Values, allow_non_finite: boolean, state: JsSource[], overrides: string[]): Promise<Session>;
    /**
     * Returns the first `show` examples, token by token → `DataPreview[]`.
     */
    dataPreview(show: number): unknown;
    /**
     * Returns the `ModelDetails` of the current weights.
     */
    details(): unknown;
    /**
     * Returns the text of token ids.
     */
    detokenize(ids: Uint32Array | number[]): string;
    /**
     * Returns the mean loss over the validation part → `EvalReport`.
     */
    evaluate(max_batches?: number | null): Promise<unknown>;
    /**
     * Writes the model to files for other programs, with the options of `ExportOptions`; `base` are the GGUF files in which a patch
     * replaces tensors.
     */
    exportModel(options: Values, base: JsSource[]): Promise<FileStream>;
    /**
     * Ends the profile that `startProfile` began → `ProfileReport`.
     */
    finishProfile(): unknown;
    /**
     * Generates text after `prompt`, with the weights at the time of each token.
     */
    generate(prompt: string, options: Values): TokenStream;
    /**
     * Returns the `SessionInfo`.
     */
    info(): unknown;
    /**
     * Returns the planned learning rates of every `stride`-th step from the first, `points` of them.
     */
    previewSchedule(points: number, stride: number): Float64Array;
    /**
     * Continues a run from the files of a checkpoint, whose bytes the caller has verified, with the same data. `changes` has the
     * keys of TrainConfig that differ from the checkpoint; `overrides` names the keys that may differ, and `data` if other data are given.
     * The checkpoint of an adapter needs the files of its `base`; for others `base` is empty. With `header`, only the headers of the base
     * are compared.
     */
    static resume(files: JsSource[], data: JsData, changes: Values | null | undefined, overrides: string[], base: JsSource[], header: boolean): Promise<Session>;
    /**
     * Returns the examples of these data as the run reads its own, except for the given settings, whole and token by token →
     * `DataPreview`.
     */
    rows(data: JsData, config: Values): Promise<unknown>;
    /**
     * Returns the `Score`, as `LoadedModel.score` does.
     */
    score(request: Values, base: boolean): Promise<unknown>;
    /**
     * Sets the learning rate by hand; undefined returns control to the schedule.
     */
    setLearningRate(rate?: number | null): void;
    /**
     * Waits for the steps that were submitted → `Advanced`. The refusal of a step is thrown by the next `step`.
     */
    settle(): Promise<unknown>;
    /**
     * Skips the batches of the next step.
     */
    skipBatch(): void;
    /**
     * Starts the schedule's decay.
     */
    startDecay(): void;
    /**
     * Starts to time the kernels of the steps that follow.
     */
    startProfile(): void;
    /**
     * Submits one optimizer step → `Advanced`. While a profile is taken, it waits for the step.
     */
    step(): Promise<unknown>;
}

/**
 * Generated tokens, one at a time.
 */
export class TokenStream {
    private constructor();
    free(): void;
    /**
     * Returns why the text ended: `stop`, `length` or `context`; undefined while it continues.
     */
    end(): string | undefined;
    /**
     * Returns the next `GeneratedToken`, or undefined at the end.
     */
    next(): Promise<unknown>;
    /**
     * Returns the number of prompt tokens that an earlier answer has computed, and of those that the first token computes.
     */
    promptTokens(): Uint32Array;
    /**
     * Returns the warnings about the prompt or the conversation: a list of `{ code, message }`.
     */
    warnings(): unknown;
}

/**
 * Withdraws `requestAbort`. Call it before each long call.
 */
export function clearAbort(): void;

/**
 * Returns the compiled module of this core, a `WebAssembly.Module`, from which another worker can start.
 */
export function compiled(): WebAssembly.Module;

/**
 * Derives the delta `name` from a base to a target, as the file `delta.safetensors` and its receipt.
 */
export function deriveDelta(base: JsSource[], target: JsSource[], name: string): Promise<{ report: unknown; stream: FileStream }>;

/**
 * Estimates the bytes that training `model` with these settings takes on the device → `Estimate`.
 */
export function estimate(model: ModelHandle, config: Values): unknown;

/**
 * Extracts the adapter that comes closest to the difference of two models, with `ExtractOptions`. `on_progress`
 * receives the number of values read so far and the number of all values.
 */
export function extractAdapter(tuned: JsSource[], base: JsSource[], options: Values, on_progress: (done: number, total: number) => void): Promise<{ report: unknown; warnings: unknown; stream: FileStream }>;

/**
 * Opens the GPU → `DeviceInfo`. Call it once per wasm instance, before the first session.
 */
export function initDevice(): Promise<unknown>;

/**
 * Describes data by themselves → `FileSummary[]`. If a file is `partial`, the beginning of one, its last row is left out. The warning
 * about entries of folders that are not read is one of the first file's.
 */
export function inspectData(data: JsData, config: Values, partial: boolean): Promise<unknown>;

/**
 * Returns the report of `tabtune inspect --json` on one file, read as `format`; with `read`, its values are checked too. The shards of an
 * index are looked for among `siblings`.
 */
export function inspectFile(file: JsSource, format: string | null | undefined, read: boolean, siblings?: JsSource[] | null): unknown;

/**
 * Describes the files together and what can be done with them, from headers alone → `Inspection`. A file that is refused is part of the answer
 * and not thrown.
 */
export function inspectModel(files: JsSource[], request: Values | null | undefined, adapter: JsSource[]): unknown;

/**
 * Measures the kernels at reference shapes → `GpuReport`. `timestamps` says whether the device has them; `on_progress` receives the
 * number of kernels measured so far and the number of all kernels.
 */
export function measureGpu(timestamps: boolean, on_progress: (done: number, total: number) => void): Promise<unknown>;

/**
 * Plans the import that `request` asks for, from headers alone → `{ plan, refusals }`. A refused request or file is part of the answer.
 */
export function planFiles(files: JsSource[], request: Values): Promise<unknown>;

/**
 * Reads one tensor of the files, by the name that it has in the plan of `request` → `{ name, dtype, shape, bytes }`. Beyond the headers only
 * its bytes are read.
 */
export function readTensor(files: JsSource[], name: string, request: Values): Promise<unknown>;

/**
 * Ends the running calls between micro-batches, batches, tokens or pieces: they reject with `call.aborted`.
 */
export function requestAbort(): void;

/**
 * Registers `on_panic`, which is called with the message and the location of a panic. The instance cannot be used after it returns.
 */
export function setPanicHook(on_panic: (message: string) => void): void;

/**
 * Trains byte-level byte pair encoding with `BpeSettings` on the texts of `data`, which are read as `settings` say and may be the beginnings
 * of `partial` files → `{ json, vocabSize }`. `on_progress` receives the number of bytes of text that were read so far.
 */
export function trainTokenizer(data: JsData, options: Values, settings: Values, partial: boolean, on_progress: (read: number) => void): Promise<{ json: Uint8Array; vocabSize: number }>;

/**
 * Adds a delta to its base, or with `remove` subtracts it from its target: the weight files of the model, with other bytes where the delta
 * changes them, and their receipt.
 */
export function useDelta(model: JsSource[], delta: JsSource, remove: boolean): Promise<{ report: unknown; stream: FileStream }>;

/**
 * Recomputes the statements of a receipt about these files; by default, of the `tabtune.receipt.json` among them.
 */
export function verifyFiles(files: JsSource[], receipt?: Values | null): unknown;

/**
 * Returns the version of the crate.
 */
export function version(): string;

/** Loads the core; `fetched` requests a file by its address, if the core is not given as a module or as bytes. */
export default function init(options: {
    module_or_path: WebAssembly.Module | BufferSource | URL | string | undefined;
    fetched: (address: URL | string) => Promise<Response>;
}): Promise<unknown>;
