/** The checkpoints of this origin and the operations on them, in all storage locations. */
import { fault } from '../../protocol/errors.js';
import type { BaseFile, StoredBaseFile } from '../../protocol/base-files.js';
import type { NamedFile, OnProgress, StoredCheckpoint } from '../../protocol/reports.js';
import type { HistoryEntry } from '../../protocol/events.js';
import { Connection } from './connection.js';
import { absent, unlessFailed } from './faults.js';
import { readContainer, writeContainer } from './container.js';
import { readFolder, writeFolder } from './folder.js';
import { markKept, removeFrom } from './generations.js';
import { historyOf, readBlocks } from './history.js';
import type { Blocks } from './history.js';
import { listAll } from './listing.js';
import { loadNewest } from './loading.js';
import type { Loaded } from './loading.js';
import { infoOf } from './manifest.js';
import type { Manifest, RunRecord } from './manifest.js';
import { mirrorNewest, restoreRun } from './mirror.js';
import { asFileName } from './names.js';
import { evict, resident } from './opfs.js';
import { chunksIn, chunksOf } from './generation-copy.js';
import type { GenerationCopy } from './generation-copy.js';
import { recordOf, storedBase, storedData, writeBase, writeRecord } from './run-records.js';
import type { RunData } from './run-records.js';
import { saveGeneration } from './saving.js';
import type { SaveRequest } from './saving.js';
import { takeIn } from './staging.js';
import { sweepRuns } from './sweep.js';

export type { Loaded, SaveRequest };
export { infoOf } from './manifest.js';

const MIRROR_EVERY_MILLIS = 10 * 60_000;

export class CheckpointStore {
  readonly #connection: Connection;
  /** Generations found damaged, and the one that was loaded or saved last, by run. */
  readonly #damaged = new Map<string, Set<number>>();
  readonly #present = new Map<string, number>();
  readonly #saving = new Set<string>();
  /** Times of the last copies to the alternative storage, by run. */
  readonly #mirrored = new Map<string, number>();

  constructor(hooks: { onClosed: () => void } = { onClosed: () => undefined }) {
    this.#connection = new Connection(hooks.onClosed);
  }

  #damagedOf(run: string): Set<number> {
    const known = this.#damaged.get(run) ?? new Set();
    this.#damaged.set(run, known);
    return known;
  }

  /** Returns whether the run is registered. */
  hasRun(run: string): Promise<boolean> {
    return this.#connection.hold(
      async () =>
        (await this.#connection.use((database) => database.getKey('runs', run))) !== undefined,
    );
  }

  /** Registers a run, with its training data if they are to be stored. */
  registerRun(
    record: Omit<RunRecord, 'data' | 'base' | 'baseData'>,
    data?: RunData,
  ): Promise<void> {
    return this.#connection.hold(() => writeRecord(this.#connection, record, data));
  }

  /** Records the files of an adapter's base, with the bytes of those that are stored. */
  keepBase(run: string, base: readonly BaseFile[], bytes?: RunData): Promise<void> {
    return this.#connection.hold(() => writeBase(this.#connection, run, base, bytes));
  }

  /** Returns the files of the run's base, with the bytes of those that are stored and whole. */
  runBase(run: string): Promise<StoredBaseFile[]> {
    return this.#connection.hold(() => storedBase(this.#connection, run));
  }

  /** Returns the record of the run, from the database or else from the alternative storage. */
  runRecord(run: string): Promise<RunRecord> {
    return this.#connection.hold(() => recordOf(this.#connection, run));
  }

  /** Returns the run's stored training data after verifying them. */
  runData(run: string): Promise<Blob | undefined> {
    return this.#connection.hold(() => storedData(this.#connection, run));
  }

  /** Streams a generation into the database; the old head stays valid until the new generation is complete. */
  save(request: SaveRequest): Promise<Manifest> {
    const { run } = request;
    return this.#connection.hold(async () => {
      if (this.#saving.has(run)) throw fault('session.busy', { found: 'another save of this run' });
      this.#saving.add(run);
      try {
        const manifest = await saveGeneration(this.#connection, request, {
          damaged: this.#damagedOf(run),
          present: this.#present.get(run),
        });
        this.#present.set(run, manifest.generation);
        return manifest;
      } finally {
        this.#saving.delete(run);
      }
    });
  }

  /** Loads the given generation, or the newest complete one. */
  load(
    run: string,
    generation?: number,
    signal?: AbortSignal,
    onProgress?: OnProgress,
  ): Promise<Loaded> {
    return this.#connection.hold(async () => {
      const onDamaged = (found: number): unknown => this.#damagedOf(run).add(found);
      const loaded = await loadNewest(this.#connection, {
        run,
        generation,
        signal,
        onProgress,
        onDamaged,
      });
      if (loaded.home === 'opfs') await restoreRun(this.#connection, run);
      this.#present.set(run, loaded.manifest.generation);
      return loaded;
    });
  }

  /** Returns steps, evaluations and samples up to a step, along the branch that was loaded or saved last. */
  history(run: string, upToStep: number): Promise<HistoryEntry[]> {
    return this.#connection.hold(() => this.#history(run, upToStep, this.#present.get(run)));
  }

  async #history(
    run: string,
    upToStep: number,
    generation: number | undefined,
  ): Promise<HistoryEntry[]> {
    const blocks = await this.#connection
      .use((database) => readBlocks(database, run))
      .catch(unlessFailed<Blocks>(new Map()));
    if (blocks.size > 0) return historyOf(blocks, upToStep, generation);
    const housed = await resident(run);
    return (housed?.copy.history ?? []).filter(({ step }) => step <= upToStep);
  }

  /** Lists all generations, newest first; those that cannot be read have a `fault`. */
  list(run?: string): Promise<StoredCheckpoint[]> {
    return this.#connection.hold(() => listAll(this.#connection, run));
  }

  /** Marks a generation as one that retention never removes, or removes the mark. */
  keep(run: string, generation: number, kept: boolean): Promise<void> {
    return this.#connection.hold(async () => {
      if (!(await this.#connection.use((database) => markKept(database, run, generation, kept))))
        throw absent(run);
    });
  }

  /** Collects a generation with its run's record and history, to be written elsewhere. */
  async #copy(
    run: string,
    generation: number | undefined,
    signal?: AbortSignal,
    onProgress?: OnProgress,
  ): Promise<GenerationCopy> {
    const onDamaged = (found: number): unknown => this.#damagedOf(run).add(found);
    const { manifest, files, home } = await loadNewest(this.#connection, {
      run,
      generation,
      signal,
      onProgress,
      onDamaged,
    });
    const housed = home === 'opfs' ? await resident(run, manifest.generation) : undefined;
    if (housed) return housed.copy;
    const record = await recordOf(this.#connection, run).catch(() => undefined);
    const history = await this.#history(run, manifest.step, manifest.generation);
    return {
      manifest,
      record,
      history,
      chunk: chunksIn(files, undefined).chunk,
      data: chunksOf(this.#connection, run, 0).data,
      verified: files,
    };
  }

  /** Copies a generation as the first one of a new run, with data and history. */
  fork(
    run: string,
    generation: number | undefined,
    label: string,
    signal?: AbortSignal,
    onProgress?: OnProgress,
  ): Promise<StoredCheckpoint> {
    return this.#connection.hold(async () => {
      const { manifest, record } = await takeIn(
        this.#connection,
        await this.#copy(run, generation, signal),
        { label, phase: 'save', signal, onProgress },
      );
      return infoOf(manifest, record);
    });
  }

  /** Removes one generation, or the run with everything it has. The caller holds the run's lock. */
  remove(run: string, generation?: number): Promise<void> {
    return this.#connection.hold(async () => {
      const gone = await this.#connection.use((database) =>
        removeFrom(database, run, generation, this.#saving.has(run)),
      );
      await evict(run, gone === 'run' ? undefined : generation);
    });
  }

  /** Exports the checkpoint as one file. */
  exportFile(
    run: string,
    generation?: number,
    signal?: AbortSignal,
    onProgress?: OnProgress,
  ): Promise<NamedFile> {
    return this.#connection.hold(async () => {
      const copy = await this.#copy(run, generation, signal, onProgress);
      const { label, step } = copy.manifest;
      return {
        name: `${asFileName(label)}-step-${step}.tabtune`,
        blob: await writeContainer(copy, signal, onProgress),
      };
    });
  }

  /** Writes the checkpoint's files to a folder that the user picked; `checkpoint.json` comes last. */
  exportFolder(
    run: string,
    generation: number | undefined,
    folder: FileSystemDirectoryHandle,
    signal?: AbortSignal,
    onProgress?: OnProgress,
  ): Promise<void> {
    return this.#connection.hold(async () =>
      writeFolder(await this.#copy(run, generation, signal), folder, signal, onProgress),
    );
  }

  /** Imports a `.tabtune` file or a folder's files, verified, as a new run. */
  importFile(
    given: Blob | readonly NamedFile[],
    signal?: AbortSignal,
    onProgress?: OnProgress,
  ): Promise<StoredCheckpoint> {
    return this.#connection.hold(async () => {
      const copy = given instanceof Blob ? await readContainer(given) : await readFolder(given);
      const { run, label } = copy.manifest;
      const { manifest, record } = await takeIn(this.#connection, copy, {
        run,
        label,
        phase: 'import',
        signal,
        onProgress,
      });
      return infoOf(manifest, record);
    });
  }

  /** Removes leftovers of crashed tabs from all runs whose lock is free. */
  sweep(): Promise<void> {
    return sweepRuns(this.#connection);
  }

  /** Writes the newest generation to the alternative storage: at most every 10 minutes unless forced, and only if there is room for two. */
  mirror(run: string, force: boolean): Promise<boolean> {
    return this.#connection.hold(async () => {
      const last = this.#mirrored.get(run) ?? -Infinity;
      if (!force && performance.now() - last < MIRROR_EVERY_MILLIS) return false;
      const there = await mirrorNewest(this.#connection, run);
      if (there) this.#mirrored.set(run, performance.now());
      return there;
    });
  }
}
