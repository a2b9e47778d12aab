/** Saves of one run: writes the core's files into storage, with the history that belongs to them. */
import { SaveClock } from './autosave.js';
import { keepBase, listOfFiles } from './bases.js';
import { keptOf } from './data.js';
import type { RunData } from './data.js';
import { finding, TabtuneError } from '../protocol/errors.js';
import { inPieces } from './sources.js';
import type { CoreMutex } from './core-mutex.js';
import type { Driver } from '../protocol/protocol.js';
import type { NeededFile, OnProgress, StoredCheckpoint } from '../protocol/reports.js';
import type { HistoryEntry, TrainerEvent } from '../protocol/events.js';
import { infoOf } from './storage/checkpoints.js';
import type { CheckpointStore } from './storage/checkpoints.js';
import { storedDriver } from './storage/driver.js';
import { parsed } from './wasm.js';
import type { JsSource, Session } from './wasm.js';

/** Maximum size of training data, and of an adapter's base files, that are stored with the run, so that it can be resumed with one click. */
const KEPT_BYTES = 64 << 20;
const OF_STORAGE = /^(QUOTA_EXCEEDED|STORAGE_|CHECKPOINT_)/;

export interface SaverParts {
  run: string;
  label: string;
  adapter: string;
  version: string;
  driver: Driver;
  data: RunData;
  /** Base files of the adapter that is trained; empty for other runs. */
  base: JsSource[];
  keepData: boolean;
  /** True if the data differ from those stored with the run. */
  newData: boolean;
  store: CheckpointStore;
}
export interface SaveCall {
  mark?: 'decay' | undefined;
  signal?: AbortSignal | undefined;
  onProgress?: OnProgress | undefined;
}

export class Saver {
  readonly clock: SaveClock;
  loss: number | undefined;
  #since: HistoryEntry[] = [];
  #lastEval: { step: number; loss: number } | undefined;
  #replaced = false;
  /** Code of the warning about the last save, if it failed. */
  #warned: string | undefined;
  #mirroring: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly parts: SaverParts,
    private readonly mutex: CoreMutex,
    private readonly emit: (event: TrainerEvent) => void,
    /** Generation that the state was loaded from or last saved as. */
    public generation: number | undefined,
    private step: number | undefined,
  ) {
    this.clock = new SaveClock(parts.driver, step);
  }

  record(event: HistoryEntry): void {
    this.#since.push(event);
    if (event.type === 'step') this.loss = event.loss;
    if (event.type !== 'eval') return;
    this.#lastEval = event;
    // The saved state of this step lacks its evaluation.
    if (this.clock.savedStep === event.step) this.clock.savedStep = undefined;
  }

  /** Returns whether no evaluation of the run so far had a lower loss. */
  async isBest(loss: number): Promise<boolean> {
    // Without an answer of the storage, only the history since the last save is known.
    const known = await this.history().catch(() => this.#since);
    return known.every((entry) => entry.type !== 'eval' || !(entry.loss <= loss));
  }

  /** Returns everything since the first step of the run. */
  async history(): Promise<HistoryEntry[]> {
    const { run, store } = this.parts;
    const saved = this.generation === undefined ? [] : await store.history(run, this.step ?? 0);
    return [...saved, ...this.#since];
  }

  /** Notes that the live state is that of this generation. */
  loaded(generation: number, step: number): void {
    this.generation = generation;
    this.step = step;
    this.clock.savedStep = step;
    this.#since = [];
    this.#lastEval = undefined;
  }

  /** Notes that the state was changed by hand since it was saved. */
  changed(): void {
    this.clock.savedStep = undefined;
  }

  /** Notes that the run has no generations left. */
  removed(): void {
    this.generation = undefined;
    this.changed();
  }

  /** Returns the newest generation, if it holds this step and nothing that belongs to it came later. */
  async newest(step: number): Promise<StoredCheckpoint | undefined> {
    if (this.clock.savedStep !== step) return undefined;
    const saved = await this.parts.store.list(this.parts.run);
    return saved.find(({ generation, fault }) => generation === this.generation && !fault);
  }

  /** Writes a generation in a turn of the mutex, so that the saved state is that of one step. */
  async write(
    session: Session,
    { mark, signal, onProgress }: SaveCall = {},
  ): Promise<StoredCheckpoint> {
    const { run, label, store, version, adapter, driver } = this.parts;
    const begun = performance.now();
    const { completedSteps: step, totalSteps } = parsed.session(session.info());
    const stream = session.checkpoint(adapter);
    try {
      await this.#register();
      const history = [...this.#since];
      const manifest = await store.save({
        run,
        label,
        files: parsed.files(stream.files()),
        // The core's errors keep their class: storage passes on typed errors.
        next: () => this.mutex.guard(() => stream.nextChunk()),
        hashed: (sha256) => stream.hashed(sha256),
        confirm: () => this.mutex.confirm(() => session.confirm()),
        meta: {
          step,
          totalSteps,
          loss: this.loss,
          validationLoss: this.#lastEval?.step === step ? this.#lastEval.loss : undefined,
          environment: { version, adapter },
          saveTotalLimit: driver.saveTotalLimit,
          mark,
        },
        history,
        signal,
        onProgress,
      });
      this.#warned = undefined;
      this.#since.splice(0, history.length);
      this.generation = manifest.generation;
      this.step = step;
      this.clock.savedStep = step;
      this.clock.bytes = manifest.bytes;
      await this.#replaceData();
      const { generation, bytes } = manifest;
      this.emit({
        type: 'checkpoint',
        step,
        generation,
        bytes,
        secs: (performance.now() - begun) / 1000,
      });
      return infoOf(manifest, await store.runRecord(run));
    } finally {
      this.clock.tried(performance.now() - begun);
      stream.free();
    }
  }

  /** Like `write`, but a failure of the storage becomes a warning, unless the last save failed in the same way, and the run continues. */
  async tryWrite(session: Session, call: SaveCall = {}): Promise<void> {
    try {
      await this.write(session, call);
    } catch (thrown) {
      if (!(thrown instanceof TabtuneError) || !OF_STORAGE.test(thrown.code)) throw thrown;
      const code = thrown.detail.code ?? thrown.code;
      if (code !== this.#warned) this.warn(thrown);
      this.#warned = code;
    }
  }

  warn(error: TabtuneError): void {
    this.emit({
      type: 'warning',
      step: this.clock.savedStep ?? 0,
      code: error.detail.code ?? error.code,
      message: error.message,
    });
  }

  /** Copies the newest generation to the alternative storage; `last` waits until it is written. */
  async mirror(last: boolean): Promise<void> {
    if (this.generation === undefined || !this.parts.driver.autosave) return;
    const { run, store } = this.parts;
    this.#mirroring = this.#mirroring
      .then(() => store.mirror(run, last))
      .catch((thrown: unknown) => {
        if (thrown instanceof TabtuneError) this.warn(thrown);
      });
    if (last) await this.#mirroring;
  }

  /** Stores the run's record and, if small enough, its data: at the first save, so that unsaved runs leave nothing behind. */
  async #register(): Promise<void> {
    if (await this.parts.store.hasRun(this.parts.run)) return;
    await this.#putRecord();
  }

  /** Replaces the stored data of the run by new data, once a generation that uses them has been saved. */
  async #replaceData(): Promise<void> {
    if (!this.parts.newData || this.#replaced) return;
    this.#replaced = true;
    await this.#putRecord();
  }

  async #putRecord(): Promise<void> {
    const { run, label, data, driver, store } = this.parts;
    const dataFiles = keptOf(data);
    const dataName = `${dataFiles[0]?.name ?? ''}${data.files.length > 1 ? ` and ${data.files.length - 1} more` : ''}`;
    const record = {
      run,
      label,
      createdAt: Date.now(),
      dataName,
      dataFiles,
      driver: storedDriver(driver),
    };
    const bytes = dataFiles.reduce((sum, file) => sum + file.bytes, 0);
    const keep = async (room: number): Promise<NeededFile[]> => {
      const next = inPieces([...data.files, ...data.validation]);
      await store.registerRun(record, bytes <= room ? { bytes, next } : undefined);
      return this.keepBase(room);
    };
    try {
      const missing = await keep(this.#room);
      if (bytes > KEPT_BYTES) missing.push(...dataFiles);
      if (missing.length > 0 && this.#room > 0)
        this.#warnUnkept(`more than ${KEPT_BYTES} bytes are not kept: ${listOfFiles(missing)}.`);
    } catch (thrown) {
      if (!(thrown instanceof TabtuneError) || thrown.detail.code !== 'source.read') throw thrown;
      await keep(0);
      this.#warnUnkept(thrown.message);
    }
  }

  /** Maximum size of training data, and of base files, that the run stores. */
  get #room(): number {
    return this.parts.keepData ? KEPT_BYTES : 0;
  }

  /** Records the base files of the adapter with the run, and stores the small ones. Returns those that a resume has to be given again. */
  async keepBase(room = this.#room): Promise<NeededFile[]> {
    const { run, base, store } = this.parts;
    return base.length > 0 ? keepBase(store, run, base, room) : [];
  }

  #warnUnkept(found: string): void {
    const step = this.clock.savedStep ?? 0;
    this.emit({ type: 'warning', step, ...finding('data.not-kept', { found }) });
  }
}
