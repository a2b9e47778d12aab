/** The state of a worker: the core, the device, the storage, and one model, later one trainer. */
import { VERSION } from '../protocol/build.js';
import { fault, protocolError, toErrorData, withDetail } from '../protocol/errors.js';
import type { TabtuneError } from '../protocol/errors.js';
import { Weights } from './asking.js';
import type { Askable } from './asking.js';
import { DeviceWatch } from './device.js';
import { CoreMutex } from './core-mutex.js';
import type { WatchedScope } from './device.js';
import { unevaluated } from './data.js';
import { Outbox } from './outbox.js';
import { progressOf } from './progress.js';
import type { WorkerMessage } from '../protocol/messages.js';
import type { GpuReport, ModelInfo, OnProgress, SessionInfo } from '../protocol/reports.js';
import { triedSample } from './prompts.js';
import { completed } from './remote.js';
import { chosenSettings, refuseSkip, storageFindings } from './run-findings.js';
import { warningsOf } from './sources.js';
import type { SaverParts } from './saver.js';
import { TrainingSession } from './session.js';
import { ownScript } from './script.js';
import { StepLoop } from './step-loop.js';
import { CheckpointStore } from './storage/checkpoints.js';
import { initDevice, loadWasm, measureGpu, parsed, setPanicHook } from './wasm.js';
import type { CoreSource, JsSource, ModelHandle, Session } from './wasm.js';

export interface Context {
  signal: AbortSignal;
  onProgress: OnProgress;
}

interface Installed extends Pick<
  SaverParts,
  'run' | 'label' | 'driver' | 'data' | 'base' | 'keepData' | 'newData'
> {
  session: Session;
  header: boolean;
  generation?: number | undefined;
}

export class WorkerState {
  /** Chat template that the open model was given instead of its own. */
  chatTemplate: string | undefined;
  readonly store: CheckpointStore;
  readonly #watch = new DeviceWatch();
  readonly #mutex = new CoreMutex(this.#watch);
  coreFrom: CoreSource;
  /** Address of this worker's script, if it is not its own. */
  scriptFrom: string | undefined;
  #wasm: Promise<string> | undefined;
  #adapter: Promise<string> | undefined;
  #model: ModelHandle | undefined;
  readonly asking = new Weights();
  /** Files that suffice to reproduce the model. */
  #files: JsSource[] = [];
  /** Opens the base of a model that has a separate adapter. */
  #base: () => ModelHandle | undefined = () => undefined;
  /** Files of the open model whose weights may still have to be loaded. */
  loading: readonly JsSource[] = [];
  #trainer: TrainingSession | undefined;
  #loop: StepLoop | undefined;
  #outbox: Outbox | undefined;
  #swept = false;

  constructor(
    private readonly post: (message: WorkerMessage) => void,
    scope: WatchedScope,
  ) {
    this.store = new CheckpointStore({ onClosed: () => this.#closed() });
    this.#watch.install(scope, (error) => this.#fault(error));
  }

  /** Reports a fault to the page as soon as it is noticed; nothing is reported after it. */
  #fault(error: TabtuneError): void {
    this.#outbox?.close();
    this.post({ type: 'fault', error: toErrorData(this.#known(error)) });
  }

  #known(error: TabtuneError): TabtuneError {
    return this.#trainer ? withDetail(error, { step: this.#trainer.confirmed }) : error;
  }

  /** Reports the message of a panic, which the trap after it does not contain. */
  #panic(message: string): void {
    this.#outbox?.close();
    this.post({
      type: 'fatal',
      error: toErrorData(this.#known(fault('core.panic', { found: message }))),
    });
  }

  #closed(): void {
    this.#trainer?.warn(this.#trainer.confirmed, fault('storage.closed'));
  }

  core(): Promise<string> {
    this.#wasm ??= loadWasm(this.coreFrom)
      .then(({ version, compiled }) => {
        setPanicHook((message) => this.#panic(message));
        if (compiled) {
          this.post({ type: 'kept', core: compiled });
          void ownScript(this.scriptFrom).then((script) => this.post({ type: 'kept', script }));
        }
        return version;
      })
      .catch((thrown: unknown) => {
        this.#wasm = undefined;
        throw thrown;
      });
    return this.#wasm;
  }

  /** Opens the device and returns the adapter's name; a device that could not be opened is requested again. */
  device(): Promise<string> {
    // The browser's GPU process, which takes a while to start, does so during the compilation of the module.
    this.#adapter ??= Promise.all([this.core(), this.#watch.present()])
      .then(() => initDevice())
      .then((info) => parsed.device(info).adapter || this.#watch.adapter || 'an unnamed adapter')
      .catch((thrown: unknown) => {
        this.#adapter = undefined;
        throw thrown;
      });
    return this.#adapter;
  }

  /** Measures the speed of the GPU. */
  async measure({ signal, onProgress }: Context): Promise<GpuReport> {
    const adapter = await this.device();
    const onMeasured = (loaded: number, total: number): void =>
      onProgress(progressOf('measure', undefined, loaded, total));
    const timestamps = !this.#watch.hides('timestamp-query');
    return this.#mutex.take(
      async () => ({ ...parsed.gpu(await measureGpu(timestamps, onMeasured)), adapter }),
      signal,
    );
  }

  /** Removes leftovers of crashed tabs, once per worker. */
  sweep(): void {
    if (this.#swept) return;
    this.#swept = true;
    void this.store.sweep().catch(() => undefined);
  }

  get model(): ModelHandle {
    if (!this.#model) throw protocolError('no model is open in this worker');
    return this.#model;
  }

  /** Loads all files of the open model, before its weights are used. */
  async complete(signal: AbortSignal, onProgress: OnProgress): Promise<void> {
    await completed(this.loading, signal, onProgress);
  }

  get files(): readonly JsSource[] {
    return this.#files;
  }

  /** Base files of the adapter that is trained, if there is one. */
  get base(): JsSource[] {
    return this.#trainer?.parts.base ?? [];
  }

  get trainer(): TrainingSession {
    if (!this.#trainer) throw protocolError('no trainer is open in this worker');
    return this.#trainer;
  }

  /** The loop of the trainer. */
  get loop(): StepLoop {
    if (!this.#loop) throw protocolError('no trainer is open in this worker');
    return this.#loop;
  }

  /** Runs a turn with the trainer's weights, or with the model's before there is a trainer. */
  weights<T>(
    work: (core: Pick<Session & ModelHandle, 'details' | 'exportModel' | 'rows'>) => Promise<T> | T,
    signal?: AbortSignal,
  ): Promise<T> {
    return this.#trainer
      ? this.#trainer.weights(work, signal)
      : this.#mutex.take(() => work(this.model), signal);
  }

  /** Runs a turn that uses weights without changing them: the trainer's, or those of the model, which the first question loads onto the device. */
  async asked<T>(work: (core: Askable) => Promise<T> | T, signal: AbortSignal): Promise<T> {
    if (this.#trainer) return this.#trainer.asked(work, signal);
    const { model } = this;
    await this.device();
    return this.#mutex.look(async () => work(await this.asking.loaded(model, this.#model)), signal);
  }

  async detokenize(ids: number[]): Promise<string> {
    return this.#trainer
      ? this.#trainer.detokenize(ids)
      : this.model.detokenize(Uint32Array.from(ids));
  }

  /** Returns the trainer, if it belongs to this run. */
  trainerOf(run: string): TrainingSession | undefined {
    return this.#trainer?.parts.run === run ? this.#trainer : undefined;
  }

  /** Makes `model` the open model. `files` suffice to reproduce it; `base` opens it without its separate adapter, if it has one. */
  hold(
    model: ModelHandle,
    files: JsSource[] = [],
    base: () => ModelHandle | undefined = () => undefined,
  ): ModelInfo {
    this.asking.drop();
    this.#model?.free();
    this.#model = model;
    this.#files = files;
    this.#base = base;
    return parsed.model(model.info());
  }

  /** Replaces the open model by its base. */
  detach(): ModelInfo {
    const base = this.#base();
    return base ? this.hold(base, this.#files) : parsed.model(this.model.info());
  }

  /** Marks the model as taken over by a trainer. */
  freeModel(): void {
    this.#model?.free();
    this.#model = undefined;
  }

  /** Frees what the connection that had this worker has left, so that another can use it; the core, the device and the storage remain. */
  async release(): Promise<void> {
    const trainer = this.#trainer;
    this.#outbox?.close();
    [this.#trainer, this.#loop, this.#outbox] = [undefined, undefined, undefined];
    this.asking.drop();
    this.freeModel();
    [this.#files, this.#base, this.loading] = [[], () => undefined, []];
    // A device that is lost cannot free it, and what its data lacked was said before.
    await trainer?.close().catch(() => undefined);
    await trainer?.parts.data.storage?.close().catch(() => undefined);
  }

  /** Sends all events, so that the page receives no result before the events that belong to it. */
  flush(): void {
    this.#outbox?.flush();
  }

  async install(installed: Installed): Promise<SessionInfo> {
    const { session, ...rest } = installed;
    const outbox = new Outbox(
      (events) => this.post({ type: 'events', events }),
      rest.driver.logEvery,
    );
    const shared = {
      adapter: await this.device(),
      version: VERSION,
      store: this.store,
      watch: this.#watch,
      outbox,
    };
    const { completedSteps, adapter } = parsed.session(session.info());
    // The files of a model that is trained itself are not needed again.
    const parts = { ...rest, ...shared, base: adapter ? rest.base : [] };
    const trainer = new TrainingSession(parts, session, completedSteps);
    try {
      const info = await trainer.inspect();
      refuseSkip(rest.driver, info.config);
      const chosen = chosenSettings(rest.driver, info.chosen);
      const { evalEvery } = rest.driver;
      // A new run that could not evaluate or sample is refused here, and not hours later.
      if (rest.generation === undefined && evalEvery) session.checkEvaluation();
      const sampled =
        rest.generation === undefined
          ? triedSample(session, rest.driver)
          : { warnings: [], fails: false };
      if (sampled.fails) rest.driver.sampleEvery = 0;
      this.#trainer = trainer;
      this.#loop = new StepLoop(trainer);
      this.#outbox = outbox;
      trainer.announce('ready', info.completedSteps);
      const { data, driver, run } = rest;
      const served = warningsOf([...data.files, ...data.validation]);
      const findings = [...served, ...sampled.warnings, ...unevaluated(data, evalEvery)];
      return {
        ...info,
        chosen,
        warnings: [
          ...info.warnings,
          ...findings,
          ...(await storageFindings(this.store, driver, run)),
        ],
      };
    } catch (thrown) {
      await trainer.close().catch(() => undefined);
      throw thrown;
    }
  }
}
