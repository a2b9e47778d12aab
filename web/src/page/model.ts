/** A model that is open in a worker of its own, until a trainer takes both over. */
import { aborted, badOption, fault } from '../protocol/errors.js';
import { toSource, toSources } from './inputs.js';
import type { DataInput, Input } from './inputs.js';
import { Link } from './link.js';
import type { Owner } from './link.js';
import { trainSettings } from './options.js';
import type { TrainOptions } from './options.js';
import type { Ask, Reply, Tag } from '../protocol/protocol.js';
import type { Finding, ModelInfo, Progress } from '../protocol/reports.js';
import type { CallOptions, Connection } from './rpc.js';
import { modelJson } from './fresh-model.js';
import type { ModelShape } from './fresh-model.js';
import { workerOptions } from './spawn.js';
import type { WorkerOptions } from './spawn.js';

export interface OpenOptions extends WorkerOptions {
  signal?: AbortSignal;
  onProgress?: (progress: Progress) => void;
}

/** Opens the model in a worker; its inputs are kept, so that another worker can do it again. */
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
  /** Architecture, tensors, configuration, tokenizer. */
  readonly info: ModelInfo;
  readonly #open: Open;
  #link: Link | undefined;
  #disposed = false;

  private constructor(info: ModelInfo, link: Link, open: Open) {
    this.info = info;
    this.#link = link;
    this.#open = open;
  }

  /** @internal The model that `open` opens, in the worker of this link. */
  static async open(worker: WorkerOptions, open: Open, call: CallOptions): Promise<Model> {
    const { info, link } = await opened(worker, open, call);
    return new Model(info, link, open);
  }

  /** Warnings about the files. */
  get warnings(): readonly Finding[] {
    return this.info.warnings;
  }

  /** The model's worker; a model that a trainer has taken over has none. A worker that was lost for good is replaced. */
  async #live(): Promise<Link> {
    const link = this.#link;
    if (!link) throw fault('model.taken', 'this model was handed to a trainer or disposed: open it again', { path: 'model' });
    if (!link.failed || typeof link.worker.worker === 'object') return link;
    const { link: next } = await opened(link.worker, this.#open, {});
    if (this.#link === link) this.#link = next;
    else next.close(aborted('the model'));
    return this.#live();
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
  async call<T extends Tag>(tag: T, ask: Ask<T>): Promise<Reply<T>> {
    return (await this.#live()).call(tag, ask);
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

function split({ signal, onProgress, tokenizer: _, ...rest }: OpenOptions & { tokenizer?: unknown }): { worker: WorkerOptions; call: CallOptions } {
  return { worker: workerOptions(rest), call: { signal, onProgress, graceMillis: GRACE_MILLIS } };
}

async function opened(worker: WorkerOptions, open: Open, call: CallOptions): Promise<{ info: ModelInfo; link: Link }> {
  const link = await Link.open(worker, ownerOf(open));
  try {
    return { info: await open(link, call), link };
  } catch (thrown) {
    link.close(aborted('the model'));
    throw thrown;
  }
}

/** Opens a GGUF file, or the files of one Hugging Face folder, by their names. */
export async function openModel(files: Input | readonly Input[], options: OpenOptions = {}): Promise<Model> {
  const { worker, call } = split(options);
  const sources = await toSources(files, 'files');
  const open: Open = (connection, given = {}) => connection.call('model.open', { sources }, given);
  return Model.open(worker, open, call);
}

/** A model with fresh weights. Without `tokenizer` (a tokenizer.json) its vocabulary is the characters of `data`. */
export async function newModel(shape: ModelShape, data: DataInput, options: OpenOptions & { tokenizer?: Input } = {}): Promise<Model> {
  const { worker, call } = split(options);
  const config = modelJson(shape);
  const source = await toSource(data, 'data', 'text.txt');
  if (options.tokenizer === undefined && source.name.endsWith('.tokens')) throw badOption('data', 'a text to take the characters of, or a tokenizer beside token ids', source.name);
  const tokenizer = options.tokenizer === undefined ? null : await toSource(options.tokenizer, 'tokenizer', 'tokenizer.json');
  const open: Open = (connection, given = {}) => connection.call('model.create', { config, tokenizer, data: source }, given);
  return Model.open(worker, open, call);
}
