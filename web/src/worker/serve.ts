/** The worker's side of the protocol: messages in, replies and events out. */
import { handlersOf } from './commands.js';
import type { CallContext, Handlers } from './handler.js';
import type { WatchedScope } from './device.js';
import { fault, protocolError, toErrorData } from '../protocol/errors.js';
import { OWNER, ownerOf, pageMessage } from '../protocol/messages.js';
import type { PageMessage, WorkerMessage } from '../protocol/messages.js';
import { isTag, REQUESTS } from '../protocol/protocol.js';
import type { Ask, Reply, Tag } from '../protocol/protocol.js';
import { wasmError } from './wasm.js';
import { WorkerState } from './worker-state.js';

/** The port that is served: a worker's global scope, or one end of a channel in tests. */
export interface Scope extends WatchedScope {
  postMessage(message: unknown, options?: { transfer: Transferable[] }): void;
  addEventListener(
    type: 'message' | 'error' | 'unhandledrejection',
    listener: (event: Event) => void,
  ): void;
}

type Post = (message: WorkerMessage, transfer?: Transferable[]) => void;

/** A request in progress. */
interface Running {
  controller: AbortController;
  ended: Promise<void>;
}

/** The connection that the worker serves, and its requests. */
interface Served {
  name: string;
  post: Post;
  running: Map<number, Running>;
  /** False until all that the connection before it has left is freed. */
  begun: boolean;
}

/** Serves one connection at a time: the first to ask has the worker until it gives it back. */
export function serve(scope: Scope): void {
  let served: Served | undefined;
  /** Settles when the state of the last connection is freed. */
  let freed: Promise<void> = Promise.resolve();
  /** The end of the core, which another connection cannot use either. */
  let dead: Extract<WorkerMessage, { type: 'fatal' }> | undefined;
  const postTo =
    (name: string): Post =>
    (message, transfer = []) =>
      scope.postMessage({ [OWNER]: name, ...message }, { transfer });
  const report: Post = (message) => {
    if (message.type === 'fatal') dead ??= message;
    if (served?.begun === true) served.post(message);
  };
  // A trap never rejects the promise that caused it, so it is caught here and ends the worker.
  const die = (thrown: unknown): void =>
    report({ type: 'fatal', error: toErrorData(wasmError(thrown)) });
  const state = new WorkerState(report, scope);
  const handlers = handlersOf(state);

  const take = (name: string): Served => {
    const next: Served = { name, post: postTo(name), running: new Map(), begun: false };
    served = next;
    freed = freed.then(() => void (next.begun = true));
    return next;
  };
  const release = ({ running }: Served): void => {
    served = undefined;
    const ended = [...running.values()].map((each) => (each.controller.abort(), each.ended));
    freed = Promise.all([freed, ...ended])
      .then(() => state.release())
      .catch(die);
  };
  const receive = (data: unknown): void => {
    const name = ownerOf(data);
    if (name === undefined) return;
    const { post, running } =
      served?.name === name ? served : { post: postTo(name), running: undefined };
    let message: PageMessage | undefined;
    try {
      message = pageMessage(data, 'message');
      if (message.type === 'request' && !isTag(message.tag))
        throw protocolError(`unknown request ${message.tag}`);
    } catch (thrown) {
      const error = toErrorData(thrown);
      post(
        message?.type === 'request'
          ? { type: 'error', id: message.id, error }
          : { type: 'fatal', error },
      );
      return;
    }
    if (message.type === 'cancel') return running?.get(message.id)?.controller.abort();
    if (message.type === 'release') return running && served && release(served);
    const { id, tag, ask } = message;
    // A connection that has ended asks nothing more.
    if (running === undefined && tag !== 'worker.hello') return;
    if (running === undefined && served)
      return post({ type: 'error', id, error: toErrorData(fault('worker.taken')) });
    if (dead) return post({ ...dead, type: 'error', id });
    const owner = served ?? take(name);
    if (!isTag(tag)) return;
    const controller = new AbortController();
    const ended = freed
      .then(() => answer(state, handlers, controller.signal, owner.post, id, tag, ask))
      .catch(die)
      .finally(() => owner.running.delete(id));
    owner.running.set(id, { controller, ended });
  };
  scope.addEventListener('message', (event) => receive(Reflect.get(event, 'data')));
  scope.addEventListener('error', (event) =>
    die(Reflect.get(event, 'error') ?? Reflect.get(event, 'message')),
  );
  scope.addEventListener('unhandledrejection', (event) => die(Reflect.get(event, 'reason')));
}

// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- ties ask, handler and reply to one tag
async function answer<T extends Tag>(
  state: WorkerState,
  handlers: Handlers,
  signal: AbortSignal,
  post: Post,
  id: number,
  tag: T,
  given: unknown,
): Promise<void> {
  const context: CallContext = {
    signal,
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
    if (thrown instanceof WebAssembly.RuntimeError) throw thrown;
  }
}
