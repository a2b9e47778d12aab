import { naturalNumber, positiveInteger } from './checks.js';
import { aborted, badOption } from './errors.js';
import type { TabtuneError } from './errors.js';
import { toSource } from './inputs.js';
import { RunLoop } from './loop.js';
import type { RunOptions } from './loop.js';
import { Model } from './model.js';
import { resumeSettings, sampleJson, trainSettings } from './options.js';
import type { SampleOptions, TrainOptions } from './options.js';
import type { CheckpointInfo, EvalReport, NamedFile, Profile, SampledToken, SessionInfo, TrainerEvent, TrainerState } from './protocol.js';
import { EventQueue } from './queue.js';
import { Recovery } from './recovery.js';
import type { Connection } from './rpc.js';
import type { CreateOptions, Estimate, ExportOptions, ResumeOptions, StepEvent } from './run-options.js';
import { Checkpoints } from './runs.js';
import { spawn, workerOptions } from './spawn.js';

/** An event of a trainer; `detail` is what `run` yields. */
export class TrainerMessage extends Event {
  constructor(readonly detail: TrainerEvent) {
    super(detail.type);
  }
}

/** One training run in one worker. */
export class Trainer extends EventTarget {
  /** Identifies the run in storage. */
  readonly runId: string;
  readonly checkpoints: Checkpoints;
  /** Shared with the parts that call; recovery puts another connection in it. */
  readonly #line: { connection: Connection };
  readonly #recovery: Recovery;
  readonly #loop: RunLoop;
  #state: TrainerState = 'ready';
  #step: number;
  #steps: StepEvent[] | undefined;

  private constructor(connection: Connection, info: SessionInfo, recovery: Recovery) {
    super();
    this.#recovery = recovery;
    this.runId = info.run;
    this.#step = info.completedSteps;
    const line = { connection };
    this.#line = line;
    this.#listen(connection);
    this.#loop = new RunLoop(line, () => this.#step, (lost, signal) => this.#recover(lost, signal));
    this.checkpoints = new Checkpoints(line, info.run, (loaded) => (this.#step = loaded.completedSteps));
  }

  #listen(connection: Connection): void {
    connection.onEvents = (events) => events.forEach((event) => this.#receive(event));
    connection.onFatal = () => this.#receive({ type: 'state', state: 'failed', step: this.#step });
  }

  async #recover(lost: TabtuneError, signal: AbortSignal | undefined): Promise<void> {
    this.#receive({ type: 'warning', step: this.#step, code: lost.code, message: lost.message });
    this.#receive({ type: 'state', state: 'recovering', step: this.#step });
    this.#line.connection.close(aborted('the lost worker'));
    try {
      const { connection, info } = await this.#recovery.again(lost, signal);
      this.#line.connection = connection;
      this.#step = info.completedSteps;
      this.#listen(connection);
    } catch (thrown) {
      this.#receive({ type: 'state', state: 'failed', step: this.#step });
      throw thrown;
    }
  }

  /** A new run. Unknown options are BAD_OPTION; after a refusal `model` can be used again. */
  static async create(options: CreateOptions): Promise<Trainer> {
    const { model, data, label, keepData = true, signal, onProgress, ...settings } = options;
    if (!(model instanceof Model)) throw badOption('model', 'a model of openModel or newModel', model);
    if (typeof keepData !== 'boolean') throw badOption('keepData', 'true or false', keepData);
    const { config, driver } = trainSettings(settings);
    const source = await toSource(data, 'data', 'text.txt');
    const run = crypto.randomUUID();
    const recovery = new Recovery({ run, data: source }, model.workerOptions);
    const ask = { run, label: label ?? source.name, config, driver, data: source, keepData };
    return model.handOver(async (connection) => new Trainer(connection, await connection.call('trainer.create', ask, { signal, onProgress }), recovery));
  }

  /** Goes on with a saved run, bit for bit where it stopped. */
  static async resume(options: ResumeOptions): Promise<Trainer> {
    const { run, generation, data, settings, override = [], signal, onProgress, ...rest } = options;
    const worker = workerOptions(rest);
    const source = data === undefined ? undefined : await toSource(data, 'data', 'text.txt');
    const connection = await spawn(worker);
    const changes = settings === undefined ? {} : resumeSettings(settings, override);
    const ask = { run, generation, data: source, ...changes };
    const recovery = new Recovery({ run, data: source, ...changes }, worker);
    try {
      return new Trainer(connection, await connection.call('trainer.resume', ask, { signal, onProgress }), recovery);
    } catch (thrown) {
      connection.close(aborted('the trainer'));
      throw thrown;
    }
  }

  /** GPU bytes of a run with these options, before any is taken. */
  static async estimate(model: Model, options: TrainOptions = {}): Promise<Estimate> {
    const { needBytes, parts } = await model.connection.call('model.estimate', { config: trainSettings(options).config });
    const reported: unknown = Reflect.get(navigator, 'deviceMemory');
    const haveBytes = typeof reported === 'number' ? reported * 2 ** 29 : undefined;
    return { ok: haveBytes === undefined ? undefined : needBytes <= haveBytes, needBytes, haveBytes, parts };
  }

  get state(): TrainerState {
    return this.#state;
  }

  get completedSteps(): number {
    return this.#step;
  }

  #receive(event: TrainerEvent): void {
    if (event.type === 'step') {
      this.#step = event.step;
      this.#steps?.push(event);
    }
    if (event.type === 'state') this.#state = event.state;
    if (event.type === 'checkpoint') this.#recovery.saved();
    this.#loop.receive(event);
    this.dispatchEvent(new TrainerMessage(event));
  }

  /** Trains and yields every event until done, stopped or aborted. Leaving the loop pauses. */
  run(options: RunOptions = {}): AsyncGenerator<TrainerEvent, void> {
    if (options.maxSteps !== undefined) positiveInteger(options.maxSteps, 'maxSteps');
    return this.#loop.run(options);
  }

  /** Exactly `count` steps; their reports. */
  async step(count = 1, options: { signal?: AbortSignal } = {}): Promise<StepEvent[]> {
    positiveInteger(count, 'count');
    const steps: StepEvent[] = [];
    this.#steps = steps;
    try {
      await this.#loop.step(count, options.signal);
      return steps;
    } finally {
      this.#steps = undefined;
    }
  }

  /** Where the GPU's time goes: the next `steps` steps with a timestamp around each kernel, which makes them slower. As `step`, while nothing runs. */
  async profile(steps = 1, options: { signal?: AbortSignal } = {}): Promise<Profile> {
    positiveInteger(steps, 'steps');
    return this.#loop.profile(steps, options.signal);
  }

  /** Settles when the present step is over; the iterator of `run` stays open. */
  pause(): Promise<void> {
    return this.#loop.pause();
  }

  async resume(): Promise<void> {
    this.#loop.resume();
  }

  /** Ends `run` after the present step. The trainer still evaluates, samples, saves and exports. */
  stop(): Promise<void> {
    return this.#loop.stop();
  }

  /** By hand from the next step on; `undefined` gives the rate back to the schedule. */
  setLearningRate(rate: number | undefined): Promise<void> {
    if (rate !== undefined && !(Number.isFinite(rate) && rate >= 0)) throw badOption('rate', 'a finite number >= 0', rate);
    return this.#line.connection.call('rate.set', { rate });
  }

  /** Starts the decay of a `wsd` or the annealing of an `infinite` schedule now; a start that is planned or has come stays. */
  startDecay(): Promise<void> {
    return this.#line.connection.call('schedule.decay', undefined);
  }

  /** The planned learning rate of steps 1 to `steps`. */
  previewSchedule(steps: number): Promise<number[]> {
    positiveInteger(steps, 'steps');
    return this.#line.connection.call('schedule.preview', { steps });
  }

  /** Mean loss and perplexity over the validation part of the data. */
  evaluate(options: { maxBatches?: number } = {}): Promise<EvalReport> {
    if (options.maxBatches !== undefined) naturalNumber(options.maxBatches, 'maxBatches');
    return this.#line.connection.call('trainer.evaluate', { maxBatches: options.maxBatches });
  }

  /** Tokens as they are made; leaving the loop ends the generation. */
  async *sample(prompt: string, options: SampleOptions & { signal?: AbortSignal } = {}): AsyncGenerator<SampledToken, void> {
    const { signal, ...sampling } = options;
    const json = sampleJson(sampling);
    const queue = new EventQueue<SampledToken>();
    const leaving = new AbortController();
    const stream = this.#line.connection.openStream((token) => queue.push(token));
    const both = signal ? AbortSignal.any([signal, leaving.signal]) : leaving.signal;
    const made = this.#line.connection.call('trainer.sample', { stream, prompt, options: json }, { signal: both }).then(
      () => queue.end(),
      (thrown: unknown) => queue.end(thrown),
    );
    try {
      yield* queue;
    } finally {
      leaving.abort();
      await made;
      this.#line.connection.closeStream(stream);
    }
  }

  save(): Promise<CheckpointInfo> {
    return this.checkpoints.save();
  }

  /** The model for others: a zip of a Hugging Face folder. */
  async export(options: ExportOptions = {}): Promise<Blob> {
    const [file] = await this.#export(options, 'zip');
    return file?.blob ?? new Blob();
  }

  /** The same folder, file by file. */
  exportFiles(options: ExportOptions = {}): Promise<NamedFile[]> {
    return this.#export(options, 'files');
  }

  #export({ format = 'safetensors', signal }: ExportOptions, container: 'zip' | 'files'): Promise<NamedFile[]> {
    if (format !== 'safetensors') throw badOption('format', "'safetensors'", format);
    return this.#line.connection.call('model.export', { format, container }, { signal });
  }

  /** Settings, progress, model and adapter of the run. */
  inspect(): Promise<SessionInfo> {
    return this.#line.connection.call('trainer.inspect', undefined);
  }

  /** Ends the worker and frees everything; unsaved steps are gone. */
  async dispose(): Promise<void> {
    this.#line.connection.close(aborted('the trainer'));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }
}
