/** The checkpoints of this browser, seen without a trainer: to offer them before one is open. */
import { aborted } from './errors.js';
import type { CheckpointInfo, NamedFile, SessionInfo } from './protocol.js';
import type { Line } from './rpc.js';
import { spawn, workerOptions } from './spawn.js';
import type { WorkerOptions } from './spawn.js';

/** The saved runs of this origin. Its worker loads no wasm and touches no GPU. */
export class SavedRuns {
  constructor(private readonly line: Line) {}

  /** Whole checkpoints, newest first. */
  list(run?: string): Promise<CheckpointInfo[]> {
    return this.line.connection.call('checkpoint.list', { run });
  }

  /** One generation, or the whole run with its kept data. */
  remove(run: string, generation?: number): Promise<void> {
    return this.line.connection.call('checkpoint.remove', { run, generation });
  }

  /** The checkpoint as one file. */
  exportFile(run: string, generation?: number): Promise<NamedFile> {
    return this.line.connection.call('checkpoint.export', { run, generation });
  }

  /** Takes an exported file in, verified; an existing run is never overwritten. */
  importFile(file: Blob): Promise<CheckpointInfo> {
    return this.line.connection.call('checkpoint.import', { blob: file });
  }

  dispose(): void {
    this.line.connection.close(aborted('the saved runs'));
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

export async function openSavedRuns(options: WorkerOptions = {}): Promise<SavedRuns> {
  return new SavedRuns({ connection: await spawn(workerOptions(options)) });
}

/** The checkpoints of one trainer's run. */
export class Checkpoints {
  readonly #runs: SavedRuns;

  constructor(
    private readonly line: Line,
    private readonly run: string,
    private readonly onLoaded: (info: SessionInfo) => void,
  ) {
    this.#runs = new SavedRuns(line);
  }

  list(): Promise<CheckpointInfo[]> {
    return this.#runs.list(this.run);
  }

  /** Settles when the disk has it. */
  save(): Promise<CheckpointInfo> {
    return this.line.connection.call('checkpoint.save', undefined);
  }

  /** Puts the trainer back to a saved generation, by default the newest that is whole. */
  async load(generation?: number): Promise<SessionInfo> {
    const loaded = await this.line.connection.call('trainer.resume', { run: this.run, generation });
    this.onLoaded(loaded);
    return loaded;
  }

  remove(generation?: number): Promise<void> {
    return this.#runs.remove(this.run, generation);
  }

  exportFile(generation?: number): Promise<NamedFile> {
    return this.#runs.exportFile(this.run, generation);
  }

  importFile(file: Blob): Promise<CheckpointInfo> {
    return this.#runs.importFile(file);
  }
}
