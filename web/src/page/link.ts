/** The current worker, and how a call survives its loss: a new worker restores the state, then the call is repeated. */
import { TabtuneError, withDetail } from '../protocol/errors.js';
import { optionsOf } from './given.js';
import { withOverall } from './overall.js';
import { Retries } from './retries.js';
import { unlessAborted } from '../protocol/abort.js';
import type { Ask, Reply, Tag } from '../protocol/protocol.js';
import type { TrainerEvent } from '../protocol/events.js';
import { wait } from '../protocol/wait.js';
import type { CallOptions, Connection } from './rpc.js';
import { spawn } from './spawn.js';
import type { WorkerOptions } from './spawn.js';

/** Reactions of a link's owner to the loss of its worker. */
export interface Owner {
  /** Returns the last confirmed step. */
  confirmed(error: TabtuneError): number;
  lost(error: TabtuneError): void;
  /** Restores the state of the lost worker in a new one. */
  restore(connection: Connection, error: TabtuneError): Promise<void>;
  recovered(error: TabtuneError): void;
  failed(error: TabtuneError): void;
  events(events: TrainerEvent[]): void;
}

export interface LinkOptions extends CallOptions {
  /** Returns whether a call interrupted by a loss may be repeated; otherwise it rejects after the recovery. */
  again?: () => boolean;
}

const LOSSES: readonly string[] = ['DEVICE_LOST', 'WORKER_CRASHED', 'OUT_OF_MEMORY'];
const isLoss = (error: TabtuneError): boolean =>
  LOSSES.includes(error.code) && error.detail.code !== 'wasm.load';
/** Requests that need neither GPU nor core, and are answered even after a run has ended. */
const STORED = /^checkpoint\.(list|history|keep|fork|remove|export|folder|import)$/;

export class Link {
  #connection: Connection;
  #recovering: Promise<void> | undefined;
  #failed: TabtuneError | undefined;
  #closed: TabtuneError | undefined;
  #retries = new Retries();
  #spare: Promise<Connection> | undefined;
  /** A new worker that is being prepared. */
  #next: Connection | undefined;

  private constructor(
    connection: Connection,
    readonly worker: WorkerOptions,
    private owner: Owner,
  ) {
    this.#connection = connection;
    this.#listen(connection);
  }

  static async open(worker: WorkerOptions, owner: Owner, signal?: AbortSignal): Promise<Link> {
    return new Link(await spawn(worker, signal), worker, owner);
  }

  get failed(): TabtuneError | undefined {
    return this.#failed;
  }

  /** Makes another owner responsible for the state in the worker. */
  handTo(owner: Owner): void {
    this.owner = owner;
  }

  async call<T extends Tag>(tag: T, ask: Ask<T>, options: LinkOptions = {}): Promise<Reply<T>> {
    const all = optionsOf(options, tag);
    const { signal, again = () => true } = all;
    // One for all attempts, so that it never falls.
    all.onProgress = withOverall(all.onProgress, tag);
    if (this.#failed && STORED.test(tag)) return (await this.#spareWorker()).call(tag, ask, all);
    for (;;) {
      const connection = await this.#ready(signal);
      try {
        return await connection.call(tag, ask, all);
      } catch (thrown) {
        this.#check();
        if (!(thrown instanceof TabtuneError) || !isLoss(thrown)) throw thrown;
        this.#lose(thrown, connection);
        if (thrown.code !== 'OUT_OF_MEMORY' && again()) continue;
        await this.#ready(signal);
        throw withDetail(thrown, { recovered: true });
      }
    }
  }

  /** Ends the worker; pending calls reject with the reason. */
  close(reason: TabtuneError): void {
    this.#closed ??= reason;
    this.#connection.close(reason);
    this.#next?.close(reason);
    void this.#spare?.then((connection) => connection.close(reason)).catch(() => undefined);
  }

  /** Throws if the link has ended. */
  #check(): void {
    if (this.#closed) throw this.#closed;
  }

  /** Resolves to the worker with the state, once it is ready. */
  async #ready(signal: AbortSignal | undefined): Promise<Connection> {
    // An abort ends only the waiting of its own call; the recovery continues for the others.
    while (this.#recovering) await unlessAborted(this.#recovering, signal);
    const ended = this.#closed ?? this.#failed ?? this.#connection.dead;
    if (ended) throw ended;
    return this.#connection;
  }

  #listen(connection: Connection): void {
    connection.onEvents = (events) => this.owner.events(events);
    connection.onFault = (error) => this.#lose(error, connection);
    connection.onFatal = (error) => this.#lose(error, connection);
  }

  #lose(error: TabtuneError, connection: Connection): void {
    if (connection !== this.#connection || this.#recovering || this.#failed || this.#closed) return;
    // The step is recorded before the worker is discarded, because nothing more may be learnt from it afterwards.
    const confirmed = this.owner.confirmed(error);
    const known = withDetail(error, { step: confirmed });
    this.#recovering = this.#recover(known, confirmed).then(
      () => {
        this.#recovering = undefined;
        this.owner.recovered(known);
      },
      (thrown: unknown) => {
        this.#recovering = undefined;
        this.#failed = thrown instanceof TabtuneError ? thrown : known;
        if (!this.#closed) this.owner.failed(this.#failed);
      },
    );
    connection.close(known);
  }

  async #recover(lost: TabtuneError, confirmed: number): Promise<void> {
    // A worker that the caller passed in cannot be restarted, and a shader that failed would fail again.
    if (!isLoss(lost) || typeof this.worker.worker === 'object') throw lost;
    this.owner.lost(lost);
    let error = lost;
    /** True after a worker that did not start: its site may have changed, or cannot be reached. */
    let unstarted = false;
    for (;;) {
      const memory = error.code === 'OUT_OF_MEMORY';
      const secs = memory ? 0 : this.#retries.delayAfter(error, confirmed, unstarted);
      await (secs > 0 ? wait(secs * 1000) : undefined);
      this.#check();
      unstarted = true;
      try {
        const connection = await spawn(this.worker);
        unstarted = false;
        this.#next = connection;
        if (this.#closed) connection.close(this.#closed);
        connection.onEvents = (events) => this.owner.events(events);
        connection.onFault = (fault) => connection.close(fault);
        await this.owner.restore(connection, error);
        if (connection.dead) throw connection.dead;
        this.#retries.over();
        this.#connection = connection;
        this.#listen(connection);
        return;
      } catch (thrown) {
        if (!(thrown instanceof TabtuneError)) throw thrown;
        this.#next?.close(thrown);
        this.#check();
        unstarted &&= thrown.detail.code === 'worker.failed';
        const temporary =
          (isLoss(thrown) &&
            !(memory && thrown.code === 'OUT_OF_MEMORY') &&
            thrown.detail.code !== 'worker.silent') ||
          thrown.code === 'NO_ADAPTER';
        if (!temporary) throw thrown;
        error = withDetail(thrown, { step: confirmed });
      } finally {
        this.#next = undefined;
      }
    }
  }

  /** Returns a worker for storage only. */
  #spareWorker(): Promise<Connection> {
    this.#spare ??= spawn(this.worker).catch((thrown: unknown) => {
      this.#spare = undefined;
      throw thrown;
    });
    return this.#spare;
  }
}
