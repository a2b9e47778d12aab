/** Access to this browser's checkpoints without a trainer, for example to offer them before one is created. */
import { allOf, boolean, ifGiven, naturalNumber, string } from './checks.js';
import { optionsOf, ownFields } from './given.js';
import { isOf } from '../protocol/brand.js';
import { aborted, badOption } from '../protocol/errors.js';
import { copyBase, dropBase, listed } from './bases.js';
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
/** The stored checkpoint that a call is about. */
export interface GenerationOptions {
  /** Its generation, as lists of checkpoints state it. Default: the newest complete one. */
  generation?: number | undefined;
}
/** Options of long calls on one stored checkpoint. */
export interface CheckpointOptions extends GenerationOptions, Call {}
/** Options of `fork`. */
export interface ForkOptions extends GenerationOptions {
  /** Name of the new run in lists. Default: the old run's name. */
  label?: string | undefined;
}
/** Options of `remove`. */
export interface RemoveOptions {
  /** The generation to remove. Default: the whole run, with its stored data and its history. */
  generation?: number | undefined;
}
/** Options of `keep`. */
export interface KeepOptions {
  /** False takes the mark away. Default: true. */
  kept?: boolean | undefined;
}
/** Options of `openSavedRuns`. */
export interface SavedRunsOptions extends WorkerOptions {
  /** Aborts only the opening. */
  signal?: AbortSignal | undefined;
}
/** A saved run with its checkpoints. */
export interface SavedRun extends Pick<
  CheckpointInfo,
  'run' | 'label' | 'dataName' | 'hasData' | 'needsBase'
> {
  /** The newest checkpoint that can be resumed; undefined if none can. */
  newest: CheckpointInfo | undefined;
  /** All checkpoints, newest first. */
  checkpoints: CheckpointInfo[];
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

/** Checks the run, the options and the generation of a call, and returns the options. */
function which<T extends GenerationOptions>(
  run: unknown,
  options: T,
  what: string,
  keys: readonly (keyof T & string)[],
): T {
  const [, given] = allOf(
    () => string(run, 'run'),
    () => optionsOf(options, what, keys),
    () => ifGiven(ownFields(options).generation, naturalNumber, 'generation'),
  );
  return given;
}

const LONG = ['generation', 'signal', 'onProgress'] as const;

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

  /** Lists all checkpoints, or those of one run, newest first; one that cannot be resumed states the reason in `fault`. */
  async list(options: { run?: string | undefined } = {}): Promise<CheckpointInfo[]> {
    const { run } = optionsOf(options, 'the list', ['run']);
    ifGiven(run, string, 'run');
    return Promise.all((await this.#stored.call('checkpoint.list', { run })).map(listed));
  }

  /** Lists all runs, the one that was saved last first, each with its checkpoints and with what a resume has to be given. */
  async runs(): Promise<SavedRun[]> {
    const groups = new Map<string, CheckpointInfo[]>();
    for (const info of await this.list())
      groups.set(info.run, [...(groups.get(info.run) ?? []), info]);
    return [...groups].map(([run, checkpoints]) => {
      const newest = checkpoints.find(({ fault }) => fault === undefined);
      const [{ label, dataName, hasData, needsBase }] = newest
        ? [newest]
        : (checkpoints as [CheckpointInfo]);
      return { run, label, dataName, hasData, needsBase, newest, checkpoints };
    });
  }

  /** Returns the steps, evaluations and samples up to a generation, by default the newest. */
  async history(run: string, options: GenerationOptions = {}): Promise<HistoryEntry[]> {
    const { generation } = which(run, options, 'the history', ['generation']);
    return this.#stored.call('checkpoint.history', { run, generation });
  }

  /** Removes one generation, or the whole run with its stored data. Throws BUSY while the run is trained in another tab. */
  async remove(run: string, options: RemoveOptions = {}): Promise<void> {
    const { generation } = which(run, options, 'the removal', ['generation']);
    const lock = await lockRun(run);
    try {
      await this.#stored.call('checkpoint.remove', { run, generation });
      if (generation === undefined) dropBase(run);
    } finally {
      lock.release();
    }
  }

  /** Marks a generation so that it is never dropped to make room for newer ones. */
  async keep(run: string, generation: number, options: KeepOptions = {}): Promise<void> {
    const [, , { kept = true }] = allOf(
      () => string(run, 'run'),
      () => naturalNumber(generation, 'generation'),
      () => optionsOf(options, 'the mark', ['kept']),
      () => ifGiven(ownFields(options).kept, boolean, 'kept'),
    );
    return this.#stored.call('checkpoint.keep', { run, generation, kept });
  }

  /** Copies a generation, with its data and history, into a new run. */
  async fork(run: string, options: ForkOptions = {}): Promise<CheckpointInfo> {
    const { generation, label } = which(run, options, 'the copy', ['generation', 'label']);
    ifGiven(label, string, 'label');
    const info = await this.#stored.call('checkpoint.fork', { run, generation, label });
    copyBase(run, info.run);
    return listed(info);
  }

  /** Exports a checkpoint as one file, `label-step-N.tabtune`, which `importFile` and `tabtune train --resume` read. */
  async exportFile(run: string, options: CheckpointOptions = {}): Promise<File> {
    const { generation, ...call } = which(run, options, 'the export', LONG);
    const { name, blob } = await this.#stored.call('checkpoint.export', { run, generation }, call);
    return new File([blob], name, { type: 'application/octet-stream' });
  }

  /** Exports a checkpoint as the files of a folder, which `tabtune train --resume` reads. */
  async exportFolder(
    run: string,
    handle: FileSystemDirectoryHandle,
    options: CheckpointOptions = {},
  ): Promise<void> {
    const { generation, ...call } = which(run, options, 'the export', LONG);
    if (Reflect.get(Object(handle), 'kind') !== 'directory')
      throw badOption('handle', 'a FileSystemDirectoryHandle', handle);
    return this.#stored.call('checkpoint.folder', { run, generation, handle }, call);
  }

  /** Imports an exported file or the files of a folder after verifying them; an existing run is never overwritten. */
  async importFile(file: CheckpointInput, options: Call = {}): Promise<CheckpointInfo> {
    const files = importedFiles(file);
    return listed(
      await this.#stored.call('checkpoint.import', { files }, options satisfies CallOptions),
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

  /** Lists the checkpoints of the run, newest first; one that cannot be resumed states the reason in `fault`. */
  list(): Promise<CheckpointInfo[]> {
    return this.#runs.list({ run: this.#run });
  }

  /** Saves a checkpoint; resolves once the data are on disk. */
  async save(options: SaveOptions = {}): Promise<CheckpointInfo> {
    return listed(await this.#link.call('checkpoint.save', undefined, options));
  }

  /** Returns the trainer to a saved generation, by default the newest complete one. Throws BUSY while it runs. */
  async load(options: CheckpointOptions = {}): Promise<SessionInfo> {
    const { generation, ...call } = which(this.#run, options, 'the load', LONG);
    return this.#owner.alone(async () => {
      const loaded = await this.#link.call('trainer.load', { generation }, call);
      this.#owner.loaded(loaded);
      return loaded;
    });
  }

  /** Removes one generation, or all of them. */
  async remove(options: RemoveOptions = {}): Promise<void> {
    const { generation } = which(this.#run, options, 'the removal', ['generation']);
    // The trainer holds the lock of its run, and its worker serializes this with saves.
    if (this.#link.failed) return this.#runs.remove(this.#run, options);
    return this.#link.call('checkpoint.remove', { run: this.#run, generation });
  }

  /** Marks a generation so that it is never dropped to make room for newer ones. */
  keep(generation: number, options: KeepOptions = {}): Promise<void> {
    return this.#runs.keep(this.#run, generation, options);
  }

  /** Copies a generation, with its data and history, into a new run. */
  fork(options: ForkOptions = {}): Promise<CheckpointInfo> {
    return this.#runs.fork(this.#run, options);
  }

  /** Exports a checkpoint as one file, `label-step-N.tabtune`, which `importFile` and `tabtune train --resume` read. */
  exportFile(options: CheckpointOptions = {}): Promise<File> {
    return this.#runs.exportFile(this.#run, options);
  }

  /** Exports a checkpoint as the files of a folder, which `tabtune train --resume` reads. */
  exportFolder(handle: FileSystemDirectoryHandle, options: CheckpointOptions = {}): Promise<void> {
    return this.#runs.exportFolder(this.#run, handle, options);
  }

  /** Imports an exported file or the files of a folder as a run of its own, after verifying them. */
  importFile(file: CheckpointInput, options: Call = {}): Promise<CheckpointInfo> {
    return this.#runs.importFile(file, options);
  }
}
