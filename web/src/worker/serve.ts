/** The worker's side of the protocol: messages in, replies and events out. */
import { handlersOf } from './commands.js';
import type { CallContext, Handlers } from './commands.js';
import type { WatchedScope } from './device.js';
import { protocolError, toErrorData } from '../protocol/errors.js';
import { isTag, pageMessage, REQUESTS } from '../protocol/protocol.js';
import type { Ask, Reply, Tag, WorkerMessage } from '../protocol/protocol.js';
import { wasmError } from './wasm.js';
import { WorkerState } from './worker-state.js';

/** The port that is served: a worker's global scope, or one end of a channel in tests. */
export interface Scope extends WatchedScope {
  postMessage(message: unknown, options?: { transfer: Transferable[] }): void;
  addEventListener(type: 'message' | 'error' | 'unhandledrejection', listener: (event: Event) => void): void;
}

type Post = (message: WorkerMessage, transfer?: Transferable[]) => void;

export function serve(scope: Scope): void {
  const post: Post = (message, transfer = []) => scope.postMessage(message, { transfer });
  const state = new WorkerState(post, scope);
  const handlers = handlersOf(state);
  const running = new Map<number, AbortController>();

  const receive = (data: unknown): void => {
    let id: number | undefined;
    try {
      const message = pageMessage(data, 'message');
      id = message.id;
      switch (message.type) {
        case 'cancel':
          running.get(id)?.abort();
          return;
        case 'request':
          if (!isTag(message.tag)) throw protocolError(`unknown request ${message.tag}`);
          void answer(state, handlers, running, post, id, message.tag, message.ask);
          return;
        default:
          message satisfies never;
      }
    } catch (thrown) {
      const error = toErrorData(thrown);
      post(id === undefined ? { type: 'fatal', error } : { type: 'error', id, error });
    }
  };
  // A trap never rejects the promise that caused it, so it is caught here and ends the worker.
  const die = (thrown: unknown): void => post({ type: 'fatal', error: toErrorData(wasmError(thrown)) });
  scope.addEventListener('message', (event) => receive(Reflect.get(event, 'data')));
  scope.addEventListener('error', (event) => die(Reflect.get(event, 'error') ?? Reflect.get(event, 'message')));
  scope.addEventListener('unhandledrejection', (event) => die(Reflect.get(event, 'reason')));
}

// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- ties ask, handler and reply to one tag
async function answer<T extends Tag>(
  state: WorkerState,
  handlers: Handlers,
  running: Map<number, AbortController>,
  post: Post,
  id: number,
  tag: T,
  given: unknown,
): Promise<void> {
  const controller = new AbortController();
  running.set(id, controller);
  const context: CallContext = {
    signal: controller.signal,
    onProgress: (progress) => post({ type: 'progress', id, progress }),
    onToken: (token) => post({ type: 'token', id, token }),
    onWarning: (warning) => post({ type: 'warning', id, warning }),
    transfer: [],
  };
  try {
    // Both tables are indexed by the same tag; TypeScript loses that correlation on a generic one.
    const ask = REQUESTS[tag].ask(given, tag) as Ask<T>;
    const handler: (ask: Ask<T>, context: CallContext) => Promise<Reply<T>> = handlers[tag];
    const reply = await handler(ask, context);
    state.flush();
    post({ type: 'reply', id, reply }, context.transfer);
  } catch (thrown) {
    const error = toErrorData(wasmError(thrown));
    state.flush();
    post({ type: 'error', id, error });
    // After a trap the wasm memory cannot be trusted.
    if (thrown instanceof WebAssembly.RuntimeError) post({ type: 'fatal', error });
  } finally {
    running.delete(id);
  }
}
