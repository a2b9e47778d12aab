import { aborted, fromErrorData, protocolError, TabtuneError, toTabtuneError } from './errors.js';
import { REQUESTS, workerMessage } from './protocol.js';
import type { Ask, Progress, Reply, SampledToken, Tag, TrainerEvent } from './protocol.js';

/** What the page needs of a worker; a real `Worker` has it, and so has a test's `MessagePort`. */
export interface Port {
  postMessage(message: unknown, transfer: Transferable[]): void;
  addEventListener(type: 'message' | 'messageerror' | 'error', listener: (event: Event) => void): void;
  terminate?(): void;
}

/** Who has the connection of the moment: after a lost GPU it is another one. */
export interface Line {
  readonly connection: Connection;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
  onProgress?: ((progress: Progress) => void) | undefined;
  transfer?: Transferable[];
}

interface Waiting {
  tag: Tag;
  resolve: (value: unknown) => void;
  reject: (error: TabtuneError) => void;
  onProgress: ((progress: Progress) => void) | undefined;
}

/** Requests to one worker, each settled exactly once; a dead worker rejects all that wait. */
export class Connection {
  onEvents: (events: TrainerEvent[]) => void = () => undefined;
  onFatal: (error: TabtuneError) => void = () => undefined;
  readonly #port: Port;
  readonly #ownsWorker: boolean;
  readonly #waiting = new Map<number, Waiting>();
  readonly #streams = new Map<number, (token: SampledToken) => void>();
  #nextId = 1;
  #dead: TabtuneError | undefined;

  constructor(port: Port, ownsWorker: boolean) {
    this.#port = port;
    this.#ownsWorker = ownsWorker;
    port.addEventListener('message', (event) => this.#receive(event));
    port.addEventListener('messageerror', () => this.close(protocolError('a message of the worker could not be read')));
    port.addEventListener('error', (event) => {
      const message: unknown = Reflect.get(event, 'message');
      const said = typeof message === 'string' && message !== '' ? message : 'its script could not be loaded';
      this.close(new TabtuneError('WORKER_CRASHED', `the training worker failed: ${said}. Reload the page; the last checkpoint is kept.`));
    });
  }

  get dead(): TabtuneError | undefined {
    return this.#dead;
  }

  call<T extends Tag>(tag: T, ask: Ask<T>, options: CallOptions = {}): Promise<Reply<T>> {
    const { signal, onProgress, transfer = [] } = options;
    if (this.#dead) return Promise.reject(this.#dead);
    if (signal?.aborted) return Promise.reject(aborted(tag));
    const id = this.#nextId++;
    const answered = new Promise<unknown>((resolve, reject) => {
      this.#waiting.set(id, { tag, resolve, reject, onProgress });
      try {
        this.#port.postMessage({ type: 'request', id, tag, ask }, transfer);
      } catch (thrown) {
        this.#waiting.delete(id);
        reject(toTabtuneError(thrown, 'PROTOCOL'));
      }
    });
    const cancel = () => this.#port.postMessage({ type: 'cancel', id }, []);
    signal?.addEventListener('abort', cancel, { once: true });
    return answered
      .finally(() => signal?.removeEventListener('abort', cancel))
      .then((reply) => {
        // Each shape yields its own request's reply; the table's correlation is lost on a generic tag.
        return REQUESTS[tag].reply(reply, `${tag} reply`) as Reply<T>;
      });
  }

  /** Tokens of one `trainer.sample` request; the number travels as its `stream`. */
  openStream(onToken: (token: SampledToken) => void): number {
    const stream = this.#nextId++;
    this.#streams.set(stream, onToken);
    return stream;
  }

  closeStream(stream: number): void {
    this.#streams.delete(stream);
  }

  /** Ends the worker, which is the only way to free wasm memory, and rejects all that wait. */
  close(reason: TabtuneError): void {
    if (this.#dead) return;
    this.#dead = reason;
    if (this.#ownsWorker) this.#port.terminate?.();
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    this.#streams.clear();
    for (const { reject } of waiting) reject(reason);
    if (reason.code !== 'ABORTED') this.onFatal(reason);
  }

  #receive(event: Event): void {
    try {
      const message = workerMessage(Reflect.get(event, 'data'), 'message');
      switch (message.type) {
        case 'reply':
          this.#take(message.id)?.resolve(message.reply);
          return;
        case 'error':
          this.#take(message.id)?.reject(fromErrorData(message.error));
          return;
        case 'progress':
          this.#waiting.get(message.id)?.onProgress?.(message.progress);
          return;
        case 'events':
          this.onEvents(message.events);
          return;
        case 'token':
          this.#streams.get(message.stream)?.(message.token);
          return;
        case 'fatal':
          this.close(fromErrorData(message.error));
          return;
        default:
          message satisfies never;
      }
    } catch (thrown) {
      this.close(toTabtuneError(thrown, 'PROTOCOL'));
    }
  }

  #take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    return waiting;
  }
}
