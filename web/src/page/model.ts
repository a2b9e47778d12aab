/** A model that is open in its own worker, until a trainer takes over both. */
import { chatted, detokenized, scored } from './asking.js';
import type { Asker, ChatMessage, ChatOptions, Scorable, ScoreOptions } from './asking.js';
import type { Call } from './call.js';
import { planned, string } from './checks.js';
import { unlessAborted } from '../protocol/abort.js';
import { brandOf } from '../protocol/brand.js';
import { aborted, badOption, fault, invalidOption } from '../protocol/errors.js';
import type { TabtuneError } from '../protocol/errors.js';
import type { Exports } from './export-options.js';
import { exportsOf } from './exporting.js';
import { optionsOf, ownFields } from './given.js';
import type { DataInput } from './data-inputs.js';
import type { Link, LinkOptions } from './link.js';
import { opened } from './model-worker.js';
import type { Kept, Open, Opened } from './model-worker.js';
import { runSettings } from './options.js';
import type { TrainOptions } from './options.js';
import type { Ask, Reply, SourceSpec, Tag } from '../protocol/protocol.js';
import type {
  AdapterInfo,
  Base,
  Contract,
  ExportChoice,
  Finding,
  ModelDetails,
  ModelInfo,
  NamedTensor,
  Receipt,
  SampledToken,
  Score,
} from '../protocol/reports.js';
import type { SampleEnd } from '../protocol/events.js';
import { evaluatedRows } from './row-metrics.js';
import type { RowsOptions, RowsReport } from './row-metrics.js';
import type { PreviewOptions } from './call.js';
import type { CallOptions } from './rpc.js';
import type { AskedOptions } from './sampling.js';
import type { WorkerOptions } from './spawn.js';

const takenError = (): TabtuneError => fault('model.taken', {}, { path: 'model' });

/** A model that is open in its own worker. A trainer takes it over; otherwise `dispose` ends it. */
export class Model {
  /** Converts the model to another format, without training or GPU, and writes it to a folder, a file or a stream. Resolves to its receipt. */
  readonly exportTo: Exports['exportTo'];
  /** Returns the same export as one File with a name and a type: a zip of a folder, or the single file. */
  readonly export: Exports['export'];
  /** Returns the same export file by file, including the receipt. */
  readonly exportFiles: Exports['exportFiles'];
  /** @internal Default of `allowNonFinite` for trainers and exports of this model. */
  readonly allowNonFinite: boolean;
  /** @internal Files that the model was opened from. */
  files: SourceSpec[] | undefined;
  #open: Open;
  /** Makes `open` open only the base from then on. */
  readonly #alone: () => void;
  #info: ModelInfo;
  #details: ModelDetails;
  #link: Link | undefined;
  /** Settles once the adapter is detached: requests to the model wait for it, and reject with its error if it failed. */
  #detached: Promise<void> = Promise.resolve();
  #disposed = false;
  /** True while a trainer is being started, which may be given the model. */
  #claimed = false;
  /** Settles once it is known whether the trainer has taken the model over: requests to the model wait for it. */
  #handing: Promise<void> | undefined;
  readonly #ask: Asker = (tag, ask, options) => this.call(tag, ask, options);

  private constructor(
    { info, details, link }: Opened,
    open: Open,
    { allowNonFinite = false, files, alone = () => undefined }: Kept,
  ) {
    this.#info = info;
    this.#details = details;
    this.allowNonFinite = allowNonFinite;
    this.files = files;
    this.#alone = alone;
    this.#link = link;
    this.#open = open;
    ({
      exportTo: this.exportTo,
      export: this.export,
      exportFiles: this.exportFiles,
    } = exportsOf((ask, more) => this.call('model.export', ask, more), allowNonFinite));
  }

  /** @internal Opens a model with `open`, in a worker of its own. */
  static async open(
    worker: WorkerOptions,
    open: Open,
    call: CallOptions,
    kept: Kept = {},
  ): Promise<Model> {
    return new Model(await opened(worker, open, call), open, ownFields(kept));
  }

  /** Architecture, tensors, configuration, tokenizer. */
  get info(): ModelInfo {
    return this.#info;
  }

  /** Formats in which the model can be exported, and for the other formats the reason why not. */
  get exports(): readonly ExportChoice[] {
    return this.#details.exports;
  }

  /** Parts of this model that import, export and a round trip preserve, one by one. */
  get contract(): Contract | undefined {
    return this.#details.contract;
  }

  /** Record of where the model came from and what was done to it; undefined for a new model. */
  get receipt(): Receipt | undefined {
    return this.#details.receipt;
  }

  /** Files that training starts from, with their checksums; a new model has none. */
  get base(): Base | undefined {
    return this.#details.base;
  }

  /**
   * The adapter attached to the model, if it was opened with one. Assign null to detach it: later requests go to the base. If detaching fails, each
   * later call reports the error until null is assigned again.
   */
  get adapter(): AdapterInfo | null {
    return this.#info.adapter;
  }

  set adapter(none: AdapterInfo | null) {
    if (none !== null) throw badOption('adapter', 'null, which gives the base again', none);
    this.#info = { ...this.#info, adapter: null };
    this.#alone();
    this.#detached = this.#detach();
    this.#detached.catch(() => undefined);
  }

  async #detach(): Promise<void> {
    while (this.#handing) await this.#handing;
    const link = await this.#worker();
    this.#info = await link.call('model.detach', undefined);
    this.#details = await link.call('model.details', undefined);
  }

  /** Warnings about the files. */
  get warnings(): readonly Finding[] {
    return this.info.warnings;
  }

  /** Returns the model's worker, replacing one that was lost for good. Throws if a trainer has taken over the model. */
  async #worker(): Promise<Link> {
    const link = this.#link;
    if (!link) throw takenError();
    if (!link.failed || typeof link.worker.worker === 'object') return link;
    const { link: next } = await opened(link.worker, this.#open, {});
    if (this.#link === link) this.#link = next;
    else next.close(aborted('the model'));
    return this.#worker();
  }

  /** Returns the same worker, after a pending detachment of the adapter, and once a start in progress has left the worker to the model. */
  async #live(signal?: AbortSignal): Promise<Link> {
    while (this.#handing) await unlessAborted(this.#handing, signal);
    await this.#detached;
    return this.#worker();
  }

  /**
   * @internal Gives the worker to the object that `start` makes; if `start` fails, the model keeps the worker. The model is claimed at once, so that
   * a second start is refused; `start` receives the worker when it asks for it, until when the model answers other requests.
   */
  async handOver<T>(
    start: (take: () => Promise<{ link: Link; open: Open }>) => Promise<T>,
  ): Promise<T> {
    if (this.#claimed) throw takenError();
    this.#claimed = true;
    let over: () => void = () => undefined;
    const take = async (): Promise<{ link: Link; open: Open }> => {
      const link = await this.#live();
      this.#handing = new Promise((resolve) => (over = resolve));
      return { link, open: this.#open };
    };
    try {
      const made = await start(take);
      this.#link = undefined;
      this.#forget();
      return made;
    } finally {
      this.#claimed = false;
      this.#handing = undefined;
      over();
      if (this.#disposed) this.#end();
    }
  }

  /** Drops the files: a model that is disposed or taken over is not opened again. */
  #forget(): void {
    this.files = undefined;
    this.#open = () => Promise.reject(takenError());
  }

  /** @internal Sends a request to the model's worker. */
  async call<T extends Tag>(tag: T, ask: Ask<T>, options?: LinkOptions): Promise<Reply<T>> {
    return (await this.#live(options?.signal)).call(tag, ask, options);
  }

  /** Returns one tensor by its name in `info`, widened to f32. */
  async tensor(name: string, options: Pick<Call, 'signal'> = {}): Promise<NamedTensor> {
    string(name, 'name');
    return this.call('model.tensor', { name }, options);
  }

  /** Returns the token ids of a text. */
  async tokenize(text: string, options: AskedOptions = {}): Promise<number[]> {
    string(text, 'text');
    return this.call(
      'model.tokenize',
      { text },
      optionsOf(options, 'the text', ['signal', 'onWarning']),
    );
  }

  /** Returns the text of token ids, including special tokens. */
  detokenize(ids: readonly number[] | Uint32Array): Promise<string> {
    return detokenized(this.#ask, ids);
  }

  /**
   * Yields the tokens of the answer to a conversation, as `trainer.chat` does. The first answer or score loads the weights onto the GPU; they are
   * released when a trainer takes over the model.
   */
  chat(
    messages: readonly ChatMessage[],
    options: ChatOptions = {},
  ): AsyncGenerator<SampledToken, SampleEnd | undefined> {
    return chatted(this.#ask, messages, options);
  }

  /** Returns the probability of each token of a text, of token ids, or of messages as the chat template writes them, and the mean loss. */
  score(of: Scorable, options: ScoreOptions = {}): Promise<Score> {
    return scored(this.#ask, of, options);
  }

  /** Evaluates a custom metric: computes a number for each row of the data from the probabilities of its tokens, and the mean over all rows. */
  evaluateRows(data: DataInput, options: RowsOptions): Promise<RowsReport> {
    return evaluatedRows(this.#ask, data, options);
  }

  /** Returns the learning rates planned by a run with these settings for steps 1 to `steps`, or for every `stride`-th of them: at most 100,000. */
  async previewSchedule(
    settings: TrainOptions,
    steps: number,
    options: PreviewOptions = {},
  ): Promise<number[]> {
    const { stride } = optionsOf(options, 'the preview', ['stride']);
    return this.call('model.preview', { config: runSettings(settings), ...planned(steps, stride) });
  }

  /** A tag that keeps frameworks from wrapping this object in a proxy, which would break its private fields. */
  get [Symbol.toStringTag](): string {
    return 'Model';
  }

  /** Ends the worker and frees everything; does nothing if a trainer has taken over the model. It never rejects. */
  async dispose(): Promise<void> {
    this.#end();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  [Symbol.dispose](): void {
    this.#end();
  }

  #end(): void {
    this.#disposed = true;
    // The trainer that is being started may take the model over.
    if (this.#handing) return;
    this.#link?.close(aborted('the model'));
    this.#link = undefined;
    this.#forget();
  }
}

/** @internal Checks that `given` is a model, and one of this copy of the package: another copy's worker and private fields cannot be reached. */
export function checkModel(given: unknown): asserts given is Model {
  if (given instanceof Model) return;
  const expected = 'a model of openModel or newModel';
  if (brandOf(given) !== 'Model') throw badOption('model', expected, given);
  throw invalidOption('model', expected, 'a model of another copy of the package');
}
