/** A model that is open in a worker of its own, until a trainer takes both over. */
import { truth } from './checks.js';
import { aborted, badOption, fault } from '../protocol/errors.js';
import type { WorkerCall } from './call.js';
import type { Exports } from './export-options.js';
import { exportsOf } from './exporting.js';
import { toSource, toSources } from './inputs.js';
import type { DataInput, FilesInput, Input } from './inputs.js';
import { Link } from './link.js';
import type { LinkOptions, Owner } from './link.js';
import { trainSettings } from './options.js';
import type { TrainOptions } from './options.js';
import type { Ask, Reply, SourceSpec, Tag } from '../protocol/protocol.js';
import type { AdapterInfo, Finding, ModelDetails, ModelInfo, NamedTensor, Receipt } from '../protocol/reports.js';
import type { CallOptions, Connection } from './rpc.js';
import { modelJson } from './fresh-model.js';
import type { ModelShape } from './fresh-model.js';
import { requestJson } from './requests.js';
import type { ImportRequest } from './requests.js';
import { workerOptions } from './spawn.js';
import type { WorkerOptions } from './spawn.js';

export interface OpenOptions extends WorkerCall {
  /** What of the files is taken, and under which names. Everything */
  request?: ImportRequest;
  /** The files of a LoRA adapter, whose product is added to the weights as they are read. None */
  mergeAdapter?: FilesInput;
  /** The files of a LoRA adapter that stays beside the weights, to be trained on. None */
  adapter?: FilesInput;
  /** What a trainer of this model does if weights are not finite, unless it is told itself. false */
  allowNonFinite?: boolean;
}

/** Opens the model in a worker; its inputs are kept for another worker. */
type Open = (connection: Pick<Connection, 'call'>, options?: CallOptions) => Promise<ModelInfo>;

/** An open model has no state to lose, so a core that does not answer an abort is ended soon. */
const GRACE_MILLIS = 100;

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
  readonly files: SourceSpec[] | undefined;
  readonly #open: Open;
  /** From now on `open` opens the base alone. */
  readonly #alone: () => void;
  #info: ModelInfo;
  #details: ModelDetails;
  #link: Link | undefined;
  /** Settles when the adapter has gone: what is asked of the model waits for it, and hears why it failed. */
  #detached: Promise<void> = Promise.resolve();
  #disposed = false;

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
    if (!link) throw fault('model.taken', 'this model was handed to a trainer or disposed: open it again', { path: 'model' });
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
      return await start(link, this.#open);
    } catch (thrown) {
      if (this.#disposed) link.close(aborted('the model'));
      else this.#link = link;
      throw thrown;
    }
  }

  /** @internal A request to the model's worker. */
  async call<T extends Tag>(tag: T, ask: Ask<T>, options?: LinkOptions): Promise<Reply<T>> {
    return (await this.#live()).call(tag, ask, options);
  }

  /** One tensor by its name in `info`, widened to f32. */
  tensor(name: string, options: { signal?: AbortSignal } = {}): Promise<NamedTensor> {
    return this.call('model.tensor', { name }, options);
  }

  tokenize(text: string): Promise<number[]> {
    return this.call('model.tokenize', { text });
  }

  /** The learning rate that a run with these options plans for its steps 1 to `steps`. */
  previewSchedule(options: TrainOptions, steps: number): Promise<number[]> {
    return this.call('model.preview', { config: trainSettings(options).config, steps });
  }

  /** Ends the worker; does nothing if a trainer has taken the model over. */
  dispose(): void {
    this.#disposed = true;
    this.#link?.close(aborted('the model'));
    this.#link = undefined;
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

function split({ signal, onProgress, ...rest }: WorkerCall): { worker: WorkerOptions; call: CallOptions } {
  return { worker: workerOptions(rest), call: { signal, onProgress, graceMillis: GRACE_MILLIS } };
}

interface Opened {
  info: ModelInfo;
  details: ModelDetails;
  link: Link;
}

async function opened(worker: WorkerOptions, open: Open, call: CallOptions): Promise<Opened> {
  const link = await Link.open(worker, ownerOf(open));
  try {
    return { info: await open(link, call), details: await link.call('model.details', undefined, call), link };
  } catch (thrown) {
    link.close(aborted('the model'));
    throw thrown;
  }
}

/** Opens a GGUF file, or the files of one Hugging Face folder, by their names. */
export async function openModel(files: FilesInput, { request, mergeAdapter, adapter, allowNonFinite = false, ...rest }: OpenOptions = {}): Promise<Model> {
  const { worker, call } = split(rest);
  truth(allowNonFinite, 'allowNonFinite');
  if (adapter !== undefined && mergeAdapter !== undefined) throw badOption('adapter', 'it or mergeAdapter', 'both');
  const apart = adapter !== undefined;
  const ask = { ...(await openingOf(files, request, adapter ?? mergeAdapter, apart ? 'adapter' : 'mergeAdapter')), apart };
  const open: Open = (connection, given = {}) => connection.call('model.open', ask, given);
  const alone = (): unknown => apart && Object.assign(ask, { adapter: [], apart: false });
  return Model.open(worker, open, call, { allowNonFinite, files: ask.sources, alone });
}

/** @internal What is opened, as the worker is asked for it. */
export async function openingOf(files: FilesInput, request: ImportRequest | undefined, added: FilesInput | undefined, path: string): Promise<Omit<Ask<'model.open'>, 'apart'>> {
  const adapter = added === undefined ? [] : await toSources(added, path);
  return { request: requestJson(request), adapter, sources: await toSources(files, 'files') };
}

/** A model with fresh weights. Without `tokenizer` (a tokenizer.json) its vocabulary is the characters of `data`. */
export async function newModel(shape: ModelShape, data: DataInput, { tokenizer: given, ...rest }: WorkerCall & { tokenizer?: Input } = {}): Promise<Model> {
  const { worker, call } = split(rest);
  const config = modelJson(shape);
  const source = await toSource(data, 'data', 'text.txt');
  if (given === undefined && source.name.endsWith('.tokens')) throw badOption('data', 'a text to take the characters of, or a tokenizer beside token ids', source.name);
  const tokenizer = given === undefined ? null : await toSource(given, 'tokenizer', 'tokenizer.json');
  const open: Open = (connection, options = {}) => connection.call('model.create', { config, tokenizer, data: source }, options);
  return Model.open(worker, open, call);
}
