/** The only database connection of a worker: opened at first use, reopened after a loss, closed for a newer version. */
import { TabtuneError } from '../../protocol/errors.js';
import { limited } from '../../protocol/limited.js';
import { wait } from '../../protocol/wait.js';
import { openDatabase } from './database.js';
import type { Database } from './database.js';
import { closed, Foreign, hanging, nameOf, storageError } from './faults.js';

/** Time limits for the browser to open the database, and to complete a transaction: it can hang, and a run must continue. */
const OPEN_MILLIS = 10_000;
const USE_MILLIS = 30_000;

export class Connection {
  #database: Promise<Database> | undefined;
  /** Time at which the opening began. */
  #begun = 0;
  /** A transaction that has exceeded its limit. */
  #hanging: Promise<unknown> | undefined;
  #held = 0;
  #closing: 'newer' | 'deleted' | undefined;

  constructor(private readonly onClosed: () => void) {}

  #open(): Promise<Database> {
    if (this.#closing === 'newer' && this.#database === undefined) return Promise.reject(closed());
    if (this.#database !== undefined) return this.#database;
    const opening: Promise<Database> = openDatabase({
      newer: () => this.#leave('newer'),
      deleted: () => this.#leave('deleted'),
      lost: () => this.#forget(opening),
    }).catch((thrown: unknown) => {
      this.#forget(opening);
      throw thrown;
    });
    this.#database = opening;
    this.#begun = performance.now();
    return opening;
  }

  /** Waits for an opening, with a time limit counted from its start; one that takes longer is used once it has finished. */
  #opened(opening: Promise<Database>): Promise<Database> {
    return limited(opening, Math.max(0, this.#begun + OPEN_MILLIS - performance.now()), () => {
      throw hanging('open', OPEN_MILLIS);
    });
  }

  /** Waits for a transaction, with a time limit; until one that exceeded it has ended, further ones fail at once. */
  #done<T>(work: (database: Database) => Promise<T>, database: Database): Promise<T> {
    const late = (): never => {
      throw hanging('answer from', USE_MILLIS);
    };
    if (this.#hanging) late();
    const working = work(database);
    return limited(working, USE_MILLIS, () => {
      this.#hanging = working;
      const ended = (): void => void (this.#hanging = undefined);
      void working.then(ended, ended);
      return late();
    });
  }

  #forget(opening: Promise<Database>): void {
    if (this.#database === opening) this.#database = undefined;
  }

  #leave(why: 'newer' | 'deleted'): void {
    this.#closing = why;
    if (this.#held === 0) this.#close();
  }

  #close(): void {
    const database = this.#database;
    this.#database = undefined;
    void database?.then((open) => open.close()).catch(() => undefined);
    if (this.#closing === 'newer') this.onClosed();
    else this.#closing = undefined;
  }

  /** Runs one call of the store; the connection is not closed before its end. */
  async hold<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closing === 'newer') throw closed();
    this.#held += 1;
    try {
      return await work();
    } catch (thrown) {
      if (thrown instanceof Foreign) throw thrown.thrown;
      throw storageError(thrown);
    } finally {
      this.#held -= 1;
      if (this.#held === 0 && this.#closing !== undefined) this.#close();
    }
  }

  /** Runs `work` on the database, and once more on a new connection if this one was lost; therefore `work` must be a single transaction. */
  async use<T>(work: (database: Database) => Promise<T>): Promise<T> {
    const opening = this.#open();
    const database = await this.#opened(opening);
    try {
      return await this.#done(work, database);
    } catch (thrown) {
      const name = thrown instanceof TabtuneError ? undefined : nameOf(thrown);
      if (name !== 'InvalidStateError' && name !== 'AbortError') throw thrown;
      // The transactions of a lost connection end before its own event arrives.
      await wait(0);
      if (name === 'AbortError' && this.#database === opening) throw thrown;
      this.#forget(opening);
      return this.#done(work, await this.#opened(this.#open()));
    }
  }
}
