/** A model that is open in a worker of its own, until a trainer takes both over. */
import { chatted, detokenized, scored } from './asking.js';
import type { Asker, ChatMessage, ChatOptions, Scorable, ScoreOptions } from './asking.js';
import { planned, words } from './checks.js';
import { aborted, badOption, fault } from '../protocol/errors.js';
import type { TabtuneError } from '../protocol/errors.js';
import type { Exports } from './export-options.js';
import { exportsOf } from './exporting.js';
import type { DataInput } from './data-inputs.js';
import { Link } from './link.js';
import type { LinkOptions, Owner } from './link.js';
import { trainSettings } from './options.js';
import type { TrainOptions } from './options.js';
import type { Ask, Reply, SourceSpec, Tag } from '../protocol/protocol.js';
import type { AdapterInfo, Finding, ModelDetails, ModelInfo, NamedTensor, Receipt, SampledToken, SampleEnd, Score } from '../protocol/reports.js';
import { evaluatedRows } from './row-metrics.js';
import type { RowsOptions, RowsReport } from './row-metrics.js';
import type { CallOptions, Connection } from './rpc.js';
import type { WorkerOptions } from './spawn.js';

/** @internal Opens the model in a worker; its inputs are kept for another worker. */
export type Open = (connection: Pick<Connection, 'call'>, options?: CallOptions) => Promise<ModelInfo>;

const taken = (): TabtuneError => fault('model.taken', 'this model was handed to a trainer or disposed: open it again', { path: 'model' });

const ownerOf = (open: Open): Owner => ({
  confirmed: () => 0,
  lost: () => undefined,
  restore: (connection) => open(connection).then(() => undefined),
  recovered: () => undefined,
  failed: () => undefined,
  events: () => undefined,
});

export class Model {
  /** The model in another form, without training and without a GPU, written to a folder, a file or a stream as it is made. Gives the receipt. */
  readonly exportTo: Exports['exportTo'];
  /** The same as one Blob: a zip of a Hugging Face folder, or the single file. */
  readonly export: Exports['export'];
  /** The same, file by file, the receipt among them. */
  readonly exportFiles: Exports['exportFiles'];
  /** @internal */
  readonly allowNonFinite: boolean;
  /** @internal What it was opened from. */
  files: SourceSpec[] | undefined;
  #open: Open;
  /** From now on `open` opens the base alone. */
  readonly #alone: () => void;
  #info: ModelInfo;
  #details: ModelDetails;
  #link: Link | undefined;
  /** Settles when the adapter has gone: what is asked of the model waits for it, and hears why it failed. */
  #detached: Promise<void> = Promise.resolve();
  #disposed = false;
  readonly #ask: Asker = (tag, ask, options) => this.call(tag, ask, options);

  private constructor({ info, details, link }: Opened, open: Open, { allowNonFinite = false, files, alone = () => undefined }: Kept) {
    this.#info = info;
    this.#details = details;
    this.allowNonFinite = allowNonFinite;
    this.files = files;
    this.#alone = alone;
    this.#link = link;
    this.#open = open;
    ({ exportTo: this.exportTo, export: this.export, exportFiles: this.exportFiles } = exportsOf((ask, more) => this.call('model.export', ask, more), allowNonFinite));
  }

  /** @internal The model that `open` opens, in the worker of this link. */
  static async open(worker: WorkerOptions, open: Open, call: CallOptions, kept: Kept = {}): Promise<Model> {
    return new Model(await opened(worker, open, call), open, kept);
  }

  /** Architecture, tensors, configuration, tokenizer. */
  get info(): ModelInfo {
    return this.#info;
  }

  /** The forms in which it can leave, and for the others why not. */
  get exports(): ModelDetails['exports'] {
    return this.#details.exports;
  }

  /** What import, export and a round trip keep of this model, surface by surface. */
  get contract(): ModelDetails['contract'] {
    return this.#details.contract;
  }

  /** Where it came from and what was done to it; a fresh model has none. */
  get receipt(): Receipt | undefined {
    return this.#details.receipt;
  }

  /** The files that training starts from, with their sums; a fresh model has none. */
  get base(): ModelDetails['base'] {
    return this.#details.base;
  }

  /** The adapter beside it, if it was opened with one. Null may be assigned: what is asked of the model from then on is asked of its base. If that fails, each later call says why, until it is assigned again. */
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
    const link = await this.#worker();
    this.#info = await link.call('model.detach', undefined);
    this.#details = await link.call('model.details', undefined);
  }

  /** Warnings about the files. */
  get warnings(): readonly Finding[] {
    return this.info.warnings;
  }

  /** The model's worker; a model that a trainer has taken over has none. A worker that was lost for good is replaced. */
  async #worker(): Promise<Link> {
    const link = this.#link;
    if (!link) throw taken();
    if (!link.failed || typeof link.worker.worker === 'object') return link;
    const { link: next } = await opened(link.worker, this.#open, {});
    if (this.#link === link) this.#link = next;
    else next.close(aborted('the model'));
    return this.#worker();
  }

  /** The same, after what was assigned. */
  async #live(): Promise<Link> {
    await this.#detached;
    return this.#worker();
  }

  /** @internal Gives the worker to what `start` makes; if it refuses, the model keeps it. */
  async handOver<T>(start: (link: Link, open: Open) => Promise<T>): Promise<T> {
    const link = await this.#live();
    this.#link = undefined;
    try {
      const made = await start(link, this.#open);
      this.#forget();
      return made;
    } catch (thrown) {
      if (this.#disposed) link.close(aborted('the model'));
      else this.#link = link;
      throw thrown;
    }
  }

  /** Lets go of the files: a model that is disposed or taken over is not opened again. */
  #forget(): void {
    this.files = undefined;
    this.#open = () => Promise.reject(taken());
  }

  /** @internal A request to the model's worker. */
  async call<T extends Tag>(tag: T, ask: Ask<T>, options?: LinkOptions): Promise<Reply<T>> {
    return (await this.#live()).call(tag, ask, options);
  }

  /** One tensor by its name in `info`, widened to f32. */
  async tensor(name: string, options: { signal?: AbortSignal | undefined } = {}): Promise<NamedTensor> {
    words(name, 'name');
    return this.call('model.tensor', { name }, options);
  }

  async tokenize(text: string): Promise<number[]> {
    words(text, 'text');
    return this.call('model.tokenize', { text });
  }

  /** The text of token ids, special tokens included. */
  detokenize(ids: readonly number[] | Uint32Array): Promise<string> {
    return detokenized(this.#ask, ids);
  }

  /** Tokens of the answer to a conversation, as `trainer.chat` gives them. The first answer or score puts the weights on the GPU; they go when a trainer takes the model over. */
  chat(messages: readonly ChatMessage[], options: ChatOptions = {}): AsyncGenerator<SampledToken, SampleEnd | undefined> {
    return chatted(this.#ask, messages, options);
  }

  /** The probability of each token of a text, of token ids, or of messages as the template writes them, and the mean loss. */
  score(of: Scorable, options: ScoreOptions = {}): Promise<Score> {
    return scored(this.#ask, of, options);
  }

  /** A metric of one's own: a figure of each row of these data, from the probabilities of its tokens, and the mean of all. */
  evaluateRows(data: DataInput, options: RowsOptions): Promise<RowsReport> {
    return evaluatedRows(this.#ask, data, options);
  }

  /** The learning rates that a run with these options plans for its steps 1 to `steps`, or for every `stride`-th of them: at most 100,000. */
  async previewSchedule(options: TrainOptions, steps: number, stride = 1): Promise<number[]> {
    return this.call('model.preview', { config: trainSettings(options).config, ...planned(steps, stride) });
  }

  /** Frameworks that wrap plain objects in proxies leave this one alone: its fields are private. */
  get [Symbol.toStringTag](): string {
    return 'Model';
  }

  /** Ends the worker; does nothing if a trainer has taken the model over. */
  dispose(): void {
    this.#disposed = true;
    this.#link?.close(aborted('the model'));
    this.#link = undefined;
    this.#forget();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

/** What a model remembers of how it was opened. */
interface Kept {
  allowNonFinite?: boolean;
  files?: SourceSpec[];
  alone?: () => void;
}

interface Opened {
  info: ModelInfo;
  details: ModelDetails;
  link: Link;
}

async function opened(worker: WorkerOptions, open: Open, call: CallOptions): Promise<Opened> {
  const link = await Link.open(worker, ownerOf(open), call.signal);
  try {
    return { info: await open(link, call), details: await link.call('model.details', undefined, call), link };
  } catch (thrown) {
    link.close(aborted('the model'));
    throw thrown;
  }
}
