import {
  aborted,
  fault,
  fromErrorData,
  protocolError,
  toTabtuneError,
} from '../protocol/errors.js';
import type { TabtuneError } from '../protocol/errors.js';
import { notify, optionsOf } from './given.js';
import type { Kept } from './kept.js';
import { withOverall } from './overall.js';
import { withIndices } from './row-places.js';
import { OWNER, ownerOf, workerMessage } from '../protocol/messages.js';
import type { PageMessage } from '../protocol/messages.js';
import { REQUESTS } from '../protocol/protocol.js';
import type { Ask, Reply, Tag } from '../protocol/protocol.js';
import type { Finding, PhaseProgress, Progress, SampledToken } from '../protocol/reports.js';
import type { TrainerEvent } from '../protocol/events.js';

/** The part of a worker that the page uses. */
export interface Port {
  postMessage(message: unknown, transfer: Transferable[]): void;
  addEventListener(
    type: 'message' | 'messageerror' | 'error',
    listener: (event: Event) => void,
    options: { signal: AbortSignal },
  ): void;
  terminate?(): void;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
  onProgress?: ((progress: Progress) => void) | undefined;
  onToken?: ((token: SampledToken) => void) | undefined;
  /** Called with each warning about the text of the request; by default the console has them. */
  onWarning?: ((warning: Finding) => void) | undefined;
  /** Time in milliseconds that the worker has to answer an abort before it is ended; for calls without state to lose. */
  graceMillis?: number | undefined;
  /** Parts of the request that are transferred to the worker instead of copied. */
  transfer?: Transferable[] | undefined;
}

/** Values that a caller may give, in the words of a message. */
const SENDABLE = 'values that can be copied to the training worker';

interface Waiting {
  tag: Tag;
  resolve: (value: unknown) => void;
  reject: (error: TabtuneError) => void;
  options: CallOptions;
  onProgress: ((progress: PhaseProgress) => void) | undefined;
}

const logged = ({ code, message }: Finding): void => console.warn(`tabtune: ${message} [${code}]`);

/** Requests to one worker, each of which settles exactly once; the end of the worker rejects all pending ones. */
export class Connection {
  onEvents: (events: TrainerEvent[]) => void = () => undefined;
  /** Called when the worker has noticed a fault of the GPU. */
  onFault: (error: TabtuneError) => void = () => undefined;
  /** Called when the worker has compiled the core or read its own script, which the page keeps for later workers. */
  onKept: (kept: Kept) => void = () => undefined;
  /** Called when the worker has ended unexpectedly. */
  onFatal: (error: TabtuneError) => void = () => undefined;
  readonly #port: Port;
  readonly #ownsWorker: boolean;
  /** Name of this connection in its messages. */
  readonly #owner = crypto.randomUUID();
  readonly #waiting = new Map<number, Waiting>();
  /** Ends the listening. */
  readonly #listening = new AbortController();
  #nextId = 1;
  #dead: TabtuneError | undefined;

  /** `why` returns the reason of an error event without a message, which means that the script did not load. */
  constructor(port: Port, ownsWorker: boolean, why: () => Promise<TabtuneError>) {
    this.#port = port;
    this.#ownsWorker = ownsWorker;
    const { signal } = this.#listening;
    port.addEventListener('message', (event) => this.#receive(event), { signal });
    // An unreadable message of a worker that the page uses too may be one of the page.
    if (ownsWorker)
      port.addEventListener(
        'messageerror',
        () => this.close(protocolError('a message of the worker could not be read')),
        { signal },
      );
    const failed = (event: Event): void => {
      const message: unknown = Reflect.get(event, 'message');
      if (typeof message === 'string' && message !== '')
        this.close(fault('worker.failed', { found: message }));
      else void why().then((error) => this.close(error));
    };
    port.addEventListener('error', failed, { signal });
  }

  get dead(): TabtuneError | undefined {
    return this.#dead;
  }

  #post(message: PageMessage, transfer: Transferable[] = []): void {
    this.#port.postMessage({ [OWNER]: this.#owner, ...message }, transfer);
  }

  async call<T extends Tag>(tag: T, ask: Ask<T>, given: CallOptions = {}): Promise<Reply<T>> {
    const options = optionsOf(given, tag);
    const { signal, graceMillis } = options;
    if (this.#dead) throw this.#dead;
    const id = this.#nextId++;
    const answered = new Promise<unknown>((resolve, reject) => {
      const onProgress = withOverall(options.onProgress, tag);
      this.#waiting.set(id, { tag, resolve, reject, options, onProgress });
      try {
        this.#post({ type: 'request', id, tag, ask }, options.transfer);
      } catch (thrown) {
        this.#waiting.delete(id);
        // The package's own messages can be copied, so the value that cannot is one of the caller's.
        reject(
          fault(
            'option.invalid',
            { subject: `of ${tag}`, expected: SENDABLE, found: toTabtuneError(thrown).message },
            {},
            thrown,
          ),
        );
      }
    });
    let timer: ReturnType<typeof setTimeout> | undefined;
    const cancel = (): void => {
      this.#post({ type: 'cancel', id });
      if (graceMillis !== undefined) timer = setTimeout(() => this.#giveUp(id, tag), graceMillis);
    };
    signal?.addEventListener('abort', cancel);
    return answered
      .finally(() => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', cancel);
      })
      .catch((thrown: unknown) => {
        throw withIndices(thrown, ask);
      })
      .then((reply) => {
        try {
          // Each parser returns the reply of its own request; a generic tag loses this connection between table entries.
          return REQUESTS[tag].reply(reply, `${tag} reply`) as Reply<T>;
        } catch (thrown) {
          throw toTabtuneError(thrown, 'PROTOCOL');
        }
      });
  }

  /** Aborts a call by ending the worker, because the core did not yield. */
  #giveUp(id: number, tag: Tag): void {
    this.#take(id)?.reject(aborted(tag));
    this.close(fault('worker.silent', { found: `the abort of ${tag}, and was ended` }));
  }

  /**
   * Ends the worker, which is the only way to free wasm memory, or gives a worker of the page back, and rejects all pending requests. A worker that
   * serves another connection is left to it.
   */
  close(reason: TabtuneError): void {
    if (this.#dead) return;
    this.#dead = reason;
    this.#listening.abort();
    if (!this.#ownsWorker) this.#post({ type: 'release' });
    else if (reason.detail.code !== 'worker.taken') this.#port.terminate?.();
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(reason);
    if (reason.code !== 'ABORTED') this.onFatal(reason);
  }

  #receive(event: Event): void {
    const data: unknown = Reflect.get(event, 'data');
    // Messages of a discarded worker are ignored.
    if (this.#dead || ownerOf(data) !== this.#owner) return;
    try {
      const message = workerMessage(data, 'message');
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
          this.#waiting.get(message.id)?.options.onToken?.(message.token);
          return;
        case 'warning':
          notify(this.#waiting.get(message.id)?.options.onWarning ?? logged, message.warning);
          return;
        case 'fault':
          this.onFault(fromErrorData(message.error));
          return;
        case 'kept':
          this.onKept(message);
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
