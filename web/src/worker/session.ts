/** The worker's trainer: one run of the core, and the times at which it is saved. All calls of the core go through one mutex. */
import { fault, toTabtuneError } from '../protocol/errors.js';
import type { TabtuneError } from '../protocol/errors.js';
import { streamed } from './asking.js';
import type { Askable } from './asking.js';
import type { DeviceWatch } from './device.js';
import type { Outbox } from './outbox.js';
import type { Values } from '../protocol/plain.js';
import type { Moment } from '../protocol/protocol.js';
import type { DataPreview } from '../protocol/reports.js';
import type {
  StoredCheckpoint,
  EvalReport,
  Finding,
  Profile,
  SampledToken,
  SessionInfo,
} from '../protocol/reports.js';
import type { HistoryEntry, SampleEnd, TrainerEvent, TrainerState } from '../protocol/events.js';
import { CoreMutex } from './core-mutex.js';
import { ofPrompt } from './prompts.js';
import { Saver } from './saver.js';
import type { SaveCall, SaverParts } from './saver.js';
import { parsed } from './wasm.js';
import type { Session, TokenStream } from './wasm.js';

export interface SessionParts extends SaverParts {
  /** True if only the headers of the base files are compared. */
  header: boolean;
  outbox: Outbox;
  watch: DeviceWatch;
  /** Generation from which the state was loaded. */
  generation?: number | undefined;
}

/** Number of completed steps, and number of reports that arrived during a call. */
export type Advance = Record<'step' | 'reported', number>;

export interface Replacement {
  session: Session;
  generation: number;
  failed?: unknown;
}

export class TrainingSession {
  readonly mutex: CoreMutex;
  readonly saver: Saver;
  /** Last step after which a read has succeeded without a fault. */
  confirmed: number;
  /** True while a loop makes steps. */
  looping = false;
  /** Step at which the schedule's decay begins, whose checkpoint is saved and kept. */
  scheduleStart: number | undefined;
  #loading = false;

  constructor(
    readonly parts: SessionParts,
    private session: Session,
    step: number,
  ) {
    this.confirmed = step;
    this.mutex = new CoreMutex(parts.watch);
    this.saver = new Saver(
      parts,
      this.mutex,
      (event) => this.emit(event),
      parts.generation,
      parts.generation === undefined ? undefined : step,
    );
  }

  /** Throws while steps are made or another state is loaded. */
  refuseBusy(): void {
    if (this.looping || this.#loading) throw fault('loop.running');
  }

  /** Frees the core's session after the current call. */
  close(): Promise<void> {
    return this.mutex.take(() => this.session.free());
  }

  #info(): SessionInfo {
    const { run, adapter } = this.parts;
    return {
      ...parsed.session(this.session.info()),
      run,
      device: adapter,
      generation: this.saver.generation,
    };
  }

  readonly previewData = (show: number): Promise<DataPreview> =>
    this.mutex.take(() => parsed.dataPreview(this.session.dataPreview(show)));

  inspect(): Promise<SessionInfo> {
    return this.mutex.take(() => this.#info());
  }

  /**
   * Replaces the live state by another one. `load` may free the live one first; it must then return a state in any case, together with the failure,
   * if there was one.
   */
  async replace(
    load: (free: () => void, present: SessionInfo) => Promise<Replacement>,
    call: SaveCall,
  ): Promise<SessionInfo> {
    this.refuseBusy();
    this.#loading = true;
    try {
      return await this.mutex.take(async () => {
        await this.#settled();
        if (this.saver.clock.needed(this.#info().completedSteps))
          await this.saver.tryWrite(this.session, call);
        const old = this.session;
        let freed = false;
        const free = (): void => {
          if (!freed) old.free();
          freed = true;
        };
        const { session, generation, failed } = await load(free, this.#info());
        free();
        this.session = session;
        const { completedSteps } = parsed.session(session.info());
        this.saver.loaded(generation, completedSteps);
        this.confirmed = completedSteps;
        if (failed !== undefined) throw toTabtuneError(failed);
        return this.#info();
      }, call.signal);
    } finally {
      this.#loading = false;
    }
  }

  emit(event: TrainerEvent): void {
    if (event.type === 'step' || event.type === 'eval' || event.type === 'sample')
      this.saver.record(event);
    this.parts.outbox.push(event);
  }

  announce(state: TrainerState, step: number): void {
    this.emit({ type: 'state', state, step });
  }

  warn(step: number, { code, detail, message }: TabtuneError): void {
    this.emit({ type: 'warning', step, code: detail.code ?? code, message });
  }

  /** Reads from the device if no loop is running; a loop reads by itself. */
  async look(): Promise<void> {
    if (!this.looping)
      await this.mutex.take(() => this.mutex.confirm(() => this.session.confirm()));
  }

  async confirm(step: number): Promise<void> {
    await this.mutex.take(() => this.mutex.confirm(() => this.session.confirm()));
    this.confirmed = step;
  }

  /** Submits the next step of the core once the GPU has finished all but the last few steps. */
  async step(signal: AbortSignal): Promise<Advance> {
    await this.parts.watch.unhurried();
    return this.#report(
      await this.mutex.take(async () => parsed.advanced(await this.session.step()), signal),
    );
  }

  /** Waits for the reports of all steps. The refusal of a step is thrown by the next call of `step`. */
  async settle(): Promise<Advance> {
    return this.mutex.take(() => this.#settled());
  }

  #report({ completedSteps, reports }: ReturnType<typeof parsed.advanced>): Advance {
    for (const report of reports) {
      // Its loss was read after the update of the previous step.
      this.confirmed = report.step - 1;
      this.emit({ type: 'step', ...report });
    }
    return { step: completedSteps, reported: reports.length };
  }

  /** Settles inside a turn, so that the saved state is one of steps whose reports were read. */
  async #settled(): Promise<Advance> {
    return this.#report(parsed.advanced(await this.session.settle()));
  }

  skipBatch(): Promise<void> {
    return this.mutex.take(() => this.session.skipBatch());
  }

  startProfile(): Promise<void> {
    return this.mutex.take(() => this.session.startProfile());
  }

  finishProfile(): Promise<Profile> {
    return this.mutex.take(() => parsed.profile(this.session.finishProfile()));
  }

  evaluate(maxBatches: number | undefined, signal: AbortSignal): Promise<EvalReport> {
    return this.mutex.look(
      async () => parsed.evaluation(await this.session.evaluate(maxBatches)),
      signal,
    );
  }

  /** Generates text from the current weights; no step is made in the meantime. */
  sample(
    prompt: string,
    options: Values,
    signal: AbortSignal,
    onToken: (token: SampledToken) => void,
    onWarning: (warning: Finding) => void = () => undefined,
  ): Promise<SampleEnd> {
    const begun = (): TokenStream =>
      ofPrompt('prompt', () => this.session.generate(prompt, options));
    return this.mutex.look(() => streamed(begun(), signal, onToken, onWarning), signal);
  }

  /** Runs a turn with the current weights that changes nothing. */
  asked<T>(work: (core: Askable) => Promise<T> | T, signal: AbortSignal): Promise<T> {
    return this.mutex.look(() => work(this.session), signal);
  }

  detokenize(ids: number[]): Promise<string> {
    return this.mutex.take(() => this.session.detokenize(Uint32Array.from(ids)));
  }

  /** Returns the current position of the run, for manual changes. */
  #moment(): Moment {
    return {
      step: parsed.session(this.session.info()).completedSteps,
      generation: this.saver.generation,
    };
  }

  setLearningRate(rate: number | undefined): Promise<Moment> {
    return this.mutex.take(() => {
      this.session.setLearningRate(rate);
      this.saver.changed();
      return this.#moment();
    });
  }

  /** Starts the decay. The state immediately before it is saved and kept, so that one run can be annealed more than once. */
  startDecay(): Promise<Moment> {
    return this.mutex.take(async () => {
      await this.#settled();
      if (this.parts.driver.autosave) await this.saver.tryWrite(this.session, { mark: 'decay' });
      this.session.startDecay();
      this.saver.changed();
      this.scheduleStart = undefined;
      return this.#moment();
    });
  }

  preview(points: number, stride: number): Promise<number[]> {
    return this.mutex.take(() => Array.from(this.session.previewSchedule(points, stride)));
  }

  history(): Promise<HistoryEntry[]> {
    return this.saver.history();
  }

  /** Saves automatically; a failure of the storage becomes a warning. */
  async autosave(step: number, signal?: AbortSignal): Promise<void> {
    if (!this.parts.driver.autosave) return;
    const mark = step === this.scheduleStart ? 'decay' : undefined;
    await this.mutex.take(async () => {
      await this.#settled();
      // Another save may have come first.
      if (this.saver.clock.needed(step)) await this.saver.tryWrite(this.session, { mark, signal });
    }, signal);
  }

  /** Makes the last save of this call, in both storage locations. */
  async finalSave(step: number): Promise<void> {
    if (this.saver.clock.needed(step)) await this.autosave(step);
    await this.saver.mirror(true);
  }

  async save(call: SaveCall): Promise<StoredCheckpoint> {
    const info = await this.mutex.take(async () => {
      await this.#settled();
      return (
        (await this.saver.newest(this.#info().completedSteps)) ??
        this.saver.write(this.session, call)
      );
    }, call.signal);
    this.confirmed = info.step;
    void this.saver.mirror(false);
    this.parts.outbox.flush();
    return info;
  }

  /** Runs a turn with the current weights. */
  weights<T>(work: (session: Session) => Promise<T> | T, signal?: AbortSignal): Promise<T> {
    return this.mutex.take(() => work(this.session), signal);
  }
}
