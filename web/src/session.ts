/** The worker's trainer: one wasm `Session`, its loop, and its saves. All calls of the core go through one lane. */
import { aborted, TabtuneError } from './errors.js';
import type { DeviceWatch } from './device.js';
import type { Outbox } from './outbox.js';
import type { CheckpointInfo, Driver, EvalReport, NamedFile, Profile, SampledToken, SessionInfo, TrainerEvent, TrainerState } from './protocol.js';
import { infoOf } from './storage/checkpoints.js';
import type { CheckpointStore } from './storage/checkpoints.js';
import { gatherFiles, inPieces, zipped } from './files.js';
import { macrotask } from './pacing.js';
import { parsed, wasmError } from './wasm.js';
import type { JsSource, Session } from './wasm.js';

/** Training data up to this size is kept with the run, so that it resumes with one click. */
const KEPT_DATA_BYTES = 64 << 20;
/** More refused steps in a row are no longer a passing thing. */
const MAX_SKIPS = 10;

export interface SessionParts {
  session: Session;
  run: string;
  label: string;
  adapter: string;
  version: string;
  driver: Driver;
  data: JsSource;
  keepData: boolean;
  store: CheckpointStore;
  outbox: Outbox;
  watch: DeviceWatch;
}

type LoopEnd = { state: 'paused' | 'stopped' | 'done'; step: number };

export class TrainingSession {
  #lane: Promise<unknown> = Promise.resolve();
  #looping: Promise<unknown> | undefined;
  #asked: 'paused' | 'stopped' | undefined;
  #loss: number | undefined;
  #skips = 0;

  constructor(readonly parts: SessionParts) {}

  /** Frees the core's session once the present call is over. */
  close(): Promise<void> {
    return this.#take((session) => session.free());
  }

  /** One call of the core at a time; afterwards the device must still be whole for the result to count. */
  #take<T>(work: (session: Session) => Promise<T> | T): Promise<T> {
    const turn = this.#lane.then(async () => {
      try {
        const result = await work(this.parts.session);
        if (this.parts.watch.fault) throw this.parts.watch.fault;
        return result;
      } catch (thrown) {
        throw await this.parts.watch.explain(wasmError(thrown));
      }
    });
    this.#lane = turn.catch(() => undefined);
    return turn;
  }

  inspect(): Promise<SessionInfo> {
    const { run, adapter } = this.parts;
    return this.#take((session) => ({ ...parsed.session(session.info()), run, adapter }));
  }

  #emit(event: TrainerEvent): void {
    this.parts.outbox.push(event);
  }

  announce(state: TrainerState, step: number): void {
    this.#emit({ type: 'state', state, step });
  }

  warn(step: number, error: TabtuneError): void {
    this.#emit({ type: 'warning', step, code: error.code, message: error.message });
  }

  /** Steps until paused, stopped, done, or `maxSteps` of them are made. */
  async run(maxSteps: number | undefined, signal: AbortSignal): Promise<LoopEnd> {
    if (this.#looping) throw new TabtuneError('BUSY', 'this trainer is already running: pause it first', { code: 'loop.running' });
    this.#asked = undefined;
    const loop = this.#loop(maxSteps, signal);
    this.#looping = loop.catch(() => undefined);
    try {
      return await loop;
    } finally {
      this.#looping = undefined;
      this.parts.outbox.flush();
    }
  }

  async #loop(maxSteps: number | undefined, signal: AbortSignal): Promise<LoopEnd> {
    const { completedSteps, totalSteps } = await this.inspect();
    let step = completedSteps;
    const last = maxSteps === undefined ? totalSteps : Math.min(totalSteps, step + maxSteps);
    this.announce('running', step);
    try {
      while (step < last && this.#asked === undefined && !signal.aborted) {
        step = (await this.#step(step)) ?? step;
        await this.#between(step, signal);
        // One macrotask per step lets pause, stop and abort overtake.
        await macrotask();
      }
    } catch (thrown) {
      this.announce('failed', step);
      throw thrown;
    }
    const state = this.#asked ?? (step >= totalSteps ? 'done' : 'paused');
    this.announce(state, step);
    if (signal.aborted) throw aborted('the run');
    return { state, step };
  }

  /** One step; `undefined` when it was refused and its batches are passed over. */
  async #step(before: number): Promise<number | undefined> {
    try {
      const report = await this.#take(async (session) => parsed.step(await session.step()));
      this.#skips = 0;
      this.#loss = report.loss;
      this.#emit({ type: 'step', ...report });
      return report.step;
    } catch (thrown) {
      const skippable = thrown instanceof TabtuneError && thrown.code === 'NON_FINITE' && this.parts.driver.onNonFinite === 'skip';
      if (!skippable || ++this.#skips > MAX_SKIPS) throw thrown;
      await this.#take((session) => session.skipBatch());
      this.warn(before, thrown);
      return undefined;
    }
  }

  /** What is due after a step: evaluation, sample, save. */
  async #between(step: number, signal: AbortSignal): Promise<void> {
    const { evalEvery, evalBatches, sampleEvery, samplePrompt, sample, saveEvery } = this.parts.driver;
    const due = (every: number): boolean => every > 0 && step > 0 && step % every === 0 && this.#skips === 0;
    if (due(evalEvery)) this.#emit({ type: 'eval', step, ...(await this.evaluate(evalBatches || undefined)) });
    if (due(sampleEvery)) {
      let text = '';
      await this.sample(samplePrompt, sample, signal, (token) => (text += token.text), false);
      this.#emit({ type: 'sample', step, prompt: samplePrompt, text });
    }
    if (due(saveEvery)) await this.save().catch((thrown: unknown) => this.#survive(step, thrown));
  }

  /** A save that finds no room costs a warning, not the run; anything else ends it. */
  #survive(step: number, thrown: unknown): void {
    if (!(thrown instanceof TabtuneError) || !['QUOTA_EXCEEDED', 'STORAGE_FAILED', 'STORAGE_BLOCKED'].includes(thrown.code)) throw thrown;
    this.warn(step, thrown);
  }

  /** Ends the loop after the present step and resolves when it has ended. */
  async halt(state: 'paused' | 'stopped'): Promise<void> {
    if (this.#looping) {
      this.#asked = state;
      await this.#looping;
    } else if (state === 'stopped') {
      this.announce('stopped', (await this.inspect()).completedSteps);
      this.parts.outbox.flush();
    }
  }

  /** Time of each kernel in the next `steps` steps. */
  async profile(steps: number, signal: AbortSignal): Promise<Profile> {
    await this.#take((session) => session.startProfile());
    let profile: Profile;
    try {
      await this.run(steps, signal);
    } finally {
      profile = await this.#take((session) => parsed.profile(session.finishProfile()));
    }
    return profile;
  }

  evaluate(maxBatches: number | undefined): Promise<EvalReport> {
    return this.#take(async (session) => parsed.evaluation(await session.evaluate(maxBatches)));
  }

  /** Text from the present weights; no step happens in between. */
  sample(prompt: string, options: string, signal: AbortSignal, onToken: (token: SampledToken) => void, rejectAbort = true): Promise<void> {
    return this.#take(async (session) => {
      const stream = session.generate(prompt, options);
      try {
        while (!signal.aborted) {
          const token = parsed.token(await stream.next());
          if (token === undefined) return;
          onToken(token);
          await macrotask();
        }
        if (rejectAbort) throw aborted('the sample');
      } finally {
        stream.free();
      }
    });
  }

  setLearningRate(rate: number | undefined): Promise<void> {
    return this.#take((session) => session.setLearningRate(rate));
  }

  startDecay(): Promise<void> {
    return this.#take((session) => session.startDecay());
  }

  preview(steps: number): Promise<number[]> {
    return this.#take((session) => Array.from(session.previewSchedule(steps)));
  }

  /** Writes a generation; the lane is held, so what is saved is the state of one step. */
  async save(): Promise<CheckpointInfo> {
    const { run, label, store, version, adapter, driver } = this.parts;
    const begun = performance.now();
    const manifest = await this.#take(async (session) => {
      await this.#register();
      const { completedSteps, totalSteps } = parsed.session(session.info());
      const stream = session.checkpoint();
      try {
        const meta = { step: completedSteps, totalSteps, loss: this.#loss, saveTotalLimit: driver.saveTotalLimit, environment: { version, adapter } };
        return await store.save({ run, label, files: parsed.files(stream.files()), next: () => stream.nextChunk(), meta });
      } finally {
        stream.free();
      }
    });
    const { generation, bytes, step } = manifest;
    this.#emit({ type: 'checkpoint', step, generation, bytes, secs: (performance.now() - begun) / 1000 });
    return infoOf(manifest, await store.runRecord(run));
  }

  /** The run's record and, if small enough, its data: at the first save, so that unsaved runs leave nothing behind. */
  async #register(): Promise<void> {
    const { run, label, data, driver, keepData, store } = this.parts;
    if (await store.hasRun(run)) return;
    const kept = keepData && data.size <= KEPT_DATA_BYTES ? { bytes: data.size, next: inPieces(data) } : undefined;
    await store.registerRun({ run, label, createdAt: Date.now(), dataName: data.name, driver: JSON.stringify(driver) }, kept);
  }

  /** The model for others, as files or as one zip. */
  exportModel(format: 'safetensors', container: 'zip' | 'files', signal: AbortSignal): Promise<NamedFile[]> {
    return this.#take(async (session) => {
      const stream = session.exportModel(format);
      try {
        const files = parsed.files(stream.files());
        return container === 'zip' ? [await zipped('model.zip', files, stream, signal)] : await gatherFiles(files, stream, signal);
      } finally {
        stream.free();
      }
    });
  }
}
