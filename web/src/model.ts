/** A model that is open in a worker of its own, until a trainer takes both over. */
import { aborted, badOption, TabtuneError } from './errors.js';
import { toSource, toSources } from './inputs.js';
import type { DataInput, Input } from './inputs.js';
import { trainSettings } from './options.js';
import type { TrainOptions } from './options.js';
import type { ModelInfo, Progress } from './protocol.js';
import type { CallOptions, Connection } from './rpc.js';
import { modelJson } from './scratch.js';
import type { ModelShape } from './scratch.js';
import { spawn, workerOptions } from './spawn.js';
import type { WorkerOptions } from './spawn.js';

export interface OpenOptions extends WorkerOptions {
  signal?: AbortSignal;
  onProgress?: (progress: Progress) => void;
}

export class Model {
  /** Architecture, tensors, configuration, tokenizer. */
  readonly info: ModelInfo;
  /** Worker options, kept for the trainer's next worker. */
  readonly workerOptions: WorkerOptions;
  #connection: Connection | undefined;
  #disposed = false;

  constructor(info: ModelInfo, connection: Connection, workerOptions: WorkerOptions) {
    this.info = info;
    this.workerOptions = workerOptions;
    this.#connection = connection;
  }

  /** The live connection; a model that a trainer has taken has none. */
  get connection(): Connection {
    if (!this.#connection) throw new TabtuneError('BAD_OPTION', 'this model was handed to a trainer or disposed: open it again', { code: 'model.taken', path: 'model' });
    return this.#connection;
  }

  /** Gives the worker to what `start` makes; if it refuses, the model keeps it. */
  async handOver<T>(start: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = this.connection;
    this.#connection = undefined;
    try {
      return await start(connection);
    } catch (thrown) {
      if (this.#disposed) connection.close(aborted('the model'));
      else this.#connection = connection;
      throw thrown;
    }
  }

  tokenize(text: string): Promise<number[]> {
    return this.connection.call('model.tokenize', { text });
  }

  /** The learning rate that a run with these options plans for its steps 1 to `steps`. */
  previewSchedule(options: TrainOptions, steps: number): Promise<number[]> {
    return this.connection.call('model.preview', { config: trainSettings(options).config, steps });
  }

  /** Ends the worker; a model that a trainer took is not touched. */
  dispose(): void {
    this.#disposed = true;
    this.#connection?.close(aborted('the model'));
    this.#connection = undefined;
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

function split({ signal, onProgress, tokenizer: _, ...rest }: OpenOptions & { tokenizer?: unknown }): { worker: WorkerOptions; call: CallOptions } {
  return { worker: workerOptions(rest), call: { signal, onProgress } };
}

async function opened(worker: WorkerOptions, open: (connection: Connection) => Promise<ModelInfo>): Promise<Model> {
  const connection = await spawn(worker);
  try {
    return new Model(await open(connection), connection, worker);
  } catch (thrown) {
    connection.close(aborted('the model'));
    throw thrown;
  }
}

/** Opens a GGUF file, or the files of one Hugging Face folder, by their names. */
export async function openModel(files: Input | readonly Input[], options: OpenOptions = {}): Promise<Model> {
  const { worker, call } = split(options);
  const sources = await toSources(files, 'files');
  return opened(worker, (connection) => connection.call('model.open', { sources }, call));
}

/** A model with fresh weights. Without `tokenizer` (a tokenizer.json) its vocabulary is the characters of `data`. */
export async function newModel(shape: ModelShape, data: DataInput, options: OpenOptions & { tokenizer?: Input } = {}): Promise<Model> {
  const { worker, call } = split(options);
  const config = modelJson(shape);
  const source = await toSource(data, 'data', 'text.txt');
  if (options.tokenizer === undefined && source.name.endsWith('.tokens')) throw badOption('data', 'a text to take the characters of, or a tokenizer beside token ids', source.name);
  const tokenizer = options.tokenizer === undefined ? null : await toSource(options.tokenizer, 'tokenizer', 'tokenizer.json');
  return opened(worker, (connection) => connection.call('model.create', { config, tokenizer, data: source }, call));
}
