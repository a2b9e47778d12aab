/** Access to this browser's checkpoints without a trainer, for example to offer them before one is created. */
import { boolean, naturalNumber, string } from './checks.js';
import { optionsOf } from './given.js';
import { isOf } from '../protocol/brand.js';
import { aborted, badOption } from '../protocol/errors.js';
import { copyBase, dropBase } from './bases.js';
import type { Link } from './link.js';
import type { CheckpointInfo, NamedFile, SessionInfo } from '../protocol/reports.js';
import type { HistoryEntry } from '../protocol/events.js';
import type { Call } from './call.js';
import type { SaveOptions } from './run-options.js';
import type { CallOptions } from './rpc.js';
import { spawn, workerOptions } from './spawn.js';
import type { WorkerOptions } from './spawn.js';
import { lockRun } from '../protocol/run-lock.js';

/** The recipient of requests to the storage. */
type Stored = Pick<Link, 'call'>;
/** Options of calls on one stored checkpoint: its generation, by default the newest complete one. */
interface ForkOptions {
  generation?: number | undefined;
  /** Name of the new run in lists. Default: the old run's name. */
  label?: string | undefined;
}
/** Options of `openSavedRuns`. */
export interface SavedRunsOptions extends WorkerOptions {
  /** Aborts only the opening. */
  signal?: AbortSignal | undefined;
}
/** A `.tabtune` file, or the files of a checkpoint folder. */
export type CheckpointInput = Blob | FileList | readonly File[];

const EXPECTED = 'a .tabtune file, or the files of a checkpoint folder';
function importedFiles(input: CheckpointInput): NamedFile[] {
  const named = (file: unknown, path: string): NamedFile => {
    if (!isOf(file, 'Blob')) throw badOption(path, EXPECTED, file);
    return { name: 'name' in file ? String(file.name) : '', blob: file };
  };
  if (!Array.isArray(input) && !isOf(input, 'FileList')) return [named(input, 'file')];
  if (input.length === 0) throw badOption('file', EXPECTED, 'none');
  return [...input].map((file, index) => named(file, `file[${index}]`));
}

/** Checks the run and the generation of a call. */
function which(run: unknown, generation: unknown): void {
  string(run, 'run');
  if (generation !== undefined) naturalNumber(generation, 'generation');
}

/** Saved runs of this origin. Its worker loads no wasm and does not use the GPU. */
export class SavedRuns {
  readonly #stored: Stored;
  readonly #close: () => void;

  private constructor(stored: Stored, close: () => void) {
    this.#stored = stored;
    this.#close = close;
  }

  /** @internal Returns the runs in the storage behind `stored`. */
  static of(stored: Stored, close: () => void): SavedRuns {
    return new SavedRuns(stored, close);
  }

  /** Lists all checkpoints, newest first; one that cannot be resumed states the reason in `fault`. */
  async list(run?: string): Promise<CheckpointInfo[]> {
    if (run !== undefined) string(run, 'run');
    return this.#stored.call('checkpoint.list', { run });
  }

  /** Returns the steps, evaluations and samples up to a generation, by default the newest. */
  async history(run: string, generation?: number): Promise<HistoryEntry[]> {
    which(run, generation);
    return this.#stored.call('checkpoint.history', { run, generation });
  }

  /** Removes one generation, or the whole run with its stored data. Throws BUSY while the run is trained in another tab. */
  async remove(run: string, generation?: number): Promise<void> {
    which(run, generation);
    const lock = await lockRun(run);
    try {
      await this.#stored.call('checkpoint.remove', { run, generation });
      if (generation === undefined) dropBase(run);
    } finally {
      lock.release();
    }
  }

  /** Marks a generation so that it is never dropped to make room for newer ones. */
  async keep(run: string, generation: number, kept = true): Promise<void> {
    which(run, naturalNumber(generation, 'generation'));
    boolean(kept, 'kept');
    return this.#stored.call('checkpoint.keep', { run, generation, kept });
  }

  /** Copies a generation, with its data and history, into a new run. */
  async fork(run: string, options: ForkOptions = {}): Promise<CheckpointInfo> {
    const { generation, label } = optionsOf(options, 'the copy', ['generation', 'label']);
    which(run, generation);
    if (label !== undefined) string(label, 'label');
    const info = await this.#stored.call('checkpoint.fork', { run, generation, label });
    copyBase(run, info.run);
    return info;
  }

  /** Exports a checkpoint as one file. */
  async exportFile(run: string, generation?: number, options: Call = {}): Promise<NamedFile> {
    which(run, generation);
    return this.#stored.call('checkpoint.export', { run, generation }, options);
  }

  /** Exports a checkpoint as the files of a folder, which `tabtune train --resume` reads. */
  async exportFolder(
    run: string,
    handle: FileSystemDirectoryHandle,
    generation?: number,
    options: Call = {},
  ): Promise<void> {
    which(run, generation);
    if (Reflect.get(Object(handle), 'kind') !== 'directory')
      throw badOption('handle', 'a FileSystemDirectoryHandle', handle);
    return this.#stored.call('checkpoint.folder', { run, generation, handle }, options);
  }

  /** Imports an exported file or the files of a folder after verifying them; an existing run is never overwritten. */
  async importFile(file: CheckpointInput, options: Call = {}): Promise<CheckpointInfo> {
    return this.#stored.call(
      'checkpoint.import',
      { files: importedFiles(file) },
      options satisfies CallOptions,
    );
  }

  /** A tag that keeps frameworks from wrapping this object in a proxy, which would break its private fields. */
  get [Symbol.toStringTag](): string {
    return 'SavedRuns';
  }

  /** Ends the worker; it never rejects. */
  async dispose(): Promise<void> {
    this.#close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  [Symbol.dispose](): void {
    this.#close();
  }
}

/** Opens the saved runs of this origin, in a worker. */
export async function openSavedRuns(options: SavedRunsOptions = {}): Promise<SavedRuns> {
  const { signal, ...worker } = optionsOf(options, 'the opening of the saved runs');
  const connection = await spawn(workerOptions(worker, ['signal']), signal);
  return SavedRuns.of(connection, () => connection.close(aborted('the saved runs')));
}

/** The trainer of a run, from the point of view of its checkpoints. */
interface RunOwner {
  /** Does work while no steps are made. */
  alone<T>(work: () => Promise<T>): Promise<T>;
  /** Called after a generation was loaded in place of the live state. */
  loaded(info: SessionInfo): void;
}

/** Checkpoints of one trainer's run. */
export class Checkpoints {
  readonly #link: Link;
  readonly #run: string;
  readonly #owner: RunOwner;
  readonly #runs: SavedRuns;

  private constructor(link: Link, run: string, owner: RunOwner) {
    this.#link = link;
    this.#run = run;
    this.#owner = owner;
    this.#runs = SavedRuns.of(link, () => undefined);
  }

  /** @internal Returns the checkpoints of the run in this link's worker. */
  static of(link: Link, run: string, owner: RunOwner): Checkpoints {
    return new Checkpoints(link, run, owner);
  }

  /** A tag with the same purpose as that of `SavedRuns`. */
  get [Symbol.toStringTag](): string {
    return 'Checkpoints';
  }

  list(): Promise<CheckpointInfo[]> {
    return this.#runs.list(this.#run);
  }

  /** Saves a checkpoint; resolves once the data are on disk. */
  save(options: SaveOptions = {}): Promise<CheckpointInfo> {
    return this.#link.call('checkpoint.save', undefined, options);
  }

  /** Returns the trainer to a saved generation, by default the newest complete one. Throws BUSY while it runs. */
  async load(generation?: number, options: Call = {}): Promise<SessionInfo> {
    if (generation !== undefined) naturalNumber(generation, 'generation');
    return this.#owner.alone(async () => {
      const loaded = await this.#link.call('trainer.load', { generation }, options);
      this.#owner.loaded(loaded);
      return loaded;
    });
  }

  /** Removes one generation, or all of them. */
  async remove(generation?: number): Promise<void> {
    which(this.#run, generation);
    // The trainer holds the lock of its run, and its worker serializes this with saves.
    if (this.#link.failed) return this.#runs.remove(this.#run, generation);
    return this.#link.call('checkpoint.remove', { run: this.#run, generation });
  }

  keep(generation: number, kept = true): Promise<void> {
    return this.#runs.keep(this.#run, generation, kept);
  }

  fork(options: ForkOptions = {}): Promise<CheckpointInfo> {
    return this.#runs.fork(this.#run, options);
  }

  exportFile(generation?: number, options: Call = {}): Promise<NamedFile> {
    return this.#runs.exportFile(this.#run, generation, options);
  }

  exportFolder(
    handle: FileSystemDirectoryHandle,
    generation?: number,
    options: Call = {},
  ): Promise<void> {
    return this.#runs.exportFolder(this.#run, handle, generation, options);
  }

  importFile(file: CheckpointInput, options: Call = {}): Promise<CheckpointInfo> {
    return this.#runs.importFile(file, options);
  }
}
