/** What the worker does for each request. One worker serves one model, then one trainer. */
import { aborted, badOption, protocolError, TabtuneError } from './errors.js';
import { DeviceWatch } from './device.js';
import { Outbox } from './outbox.js';
import { driverShape, PROTOCOL } from './protocol.js';
import type { Ask, Driver, ModelInfo, Progress, Reply, SessionInfo, Tag, WorkerMessage } from './protocol.js';
import { TrainingSession } from './session.js';
import { openSource, openSources } from './sources.js';
import type { OnProgress } from './sources.js';
import { CheckpointStore } from './storage/checkpoints.js';
import { lockRun } from './storage/lock.js';
import type { RunLock } from './storage/lock.js';
import { estimate, initDevice, loadWasm, ModelHandle, parsed, previewSchedule, Session } from './wasm.js';
import type { JsSource } from './wasm.js';
import { blobSource } from './sources.js';
import { VERSION, WASM_HASH } from './build.js';

export interface Context {
  signal: AbortSignal;
  onProgress: OnProgress;
}
type Handlers = { [T in Tag]: (ask: Ask<T>, context: Context) => Promise<Reply<T>> };

const ready: Progress = { phase: 'ready', file: undefined, loaded: 1, total: 1, fraction: 1 };
const phase = (name: 'read' | 'verify' | 'upload' | 'compile', file?: string): Progress => ({ phase: name, file, loaded: 0, total: 1, fraction: 0 });

/** Everything a worker holds, and the table of what it can be asked. */
export class Workplace {
  readonly #watch = new DeviceWatch();
  readonly #store = new CheckpointStore();
  #wasm: Promise<string> | undefined;
  #wasmFrom: { url: string | undefined; binary: ArrayBuffer | undefined } = { url: undefined, binary: undefined };
  #adapter: Promise<string> | undefined;
  #model: ModelHandle | undefined;
  #trainer: TrainingSession | undefined;
  #lock: RunLock | undefined;

  constructor(private readonly post: (message: WorkerMessage) => void) {
    this.#watch.install();
  }

  #core(): Promise<string> {
    return (this.#wasm ??= loadWasm(this.#wasmFrom.url, this.#wasmFrom.binary));
  }

  #device(): Promise<string> {
    return (this.#adapter ??= this.#core()
      .then(() => initDevice())
      .then((info) => parsed.device(info).adapter || this.#watch.adapter || 'an unnamed adapter'));
  }

  #opened(): ModelHandle {
    if (!this.#model) throw protocolError('no model is open in this worker');
    return this.#model;
  }

  #trained(): TrainingSession {
    if (!this.#trainer) throw protocolError('no trainer is open in this worker');
    return this.#trainer;
  }

  #hold(model: ModelHandle): ModelInfo {
    this.#model?.free();
    this.#model = model;
    return parsed.model(model.info());
  }

  async #install(parts: { session: Session; data: JsSource; run: string; label: string; keepData: boolean; driver: Driver }): Promise<SessionInfo> {
    const outbox = new Outbox((events) => this.post({ type: 'events', events }), parts.driver.logEvery);
    const shared = { adapter: await this.#device(), version: VERSION, store: this.#store, watch: this.#watch, outbox };
    const trainer = new TrainingSession({ ...parts, ...shared });
    let info: SessionInfo;
    try {
      info = await trainer.inspect();
      refuseSkip(parts.driver, info.config);
    } catch (thrown) {
      await trainer.close().catch(() => undefined);
      throw thrown;
    }
    // Replaced only now that the new one is whole.
    await this.#trainer?.close();
    this.#trainer = trainer;
    trainer.announce('ready', info.completedSteps);
    return info;
  }

  /** Takes the run's lock for the worker's life; what fails afterwards gives it back. */
  async #locked<T>(run: string, work: () => Promise<T>): Promise<T> {
    if (this.#lock?.run === run) return work();
    const lock = await lockRun(run);
    try {
      const result = await work();
      this.#lock?.release();
      this.#lock = lock;
      return result;
    } catch (thrown) {
      lock.release();
      throw thrown;
    }
  }

  readonly handlers: Handlers = {
    'worker.hello': async ({ protocol, version, wasmHash, wasmUrl, wasmBinary }) => {
      if (protocol !== PROTOCOL || version !== VERSION || wasmHash !== WASM_HASH) {
        throw protocolError(`page and worker are of different builds (${version} and ${VERSION}): reload the page`);
      }
      this.#wasmFrom = { url: wasmUrl, binary: wasmBinary };
      return { protocol: PROTOCOL, version: VERSION, wasmHash: WASM_HASH };
    },
    'model.open': async ({ sources }, { signal, onProgress }) => {
      await this.#core();
      const files = await openSources(sources, signal, onProgress);
      onProgress(phase('read'));
      const info = this.#hold(ModelHandle.open(files));
      onProgress(ready);
      return info;
    },
    'model.create': async ({ config, tokenizer, data }, { signal, onProgress }) => {
      await this.#core();
      const corpus = await openSource(data, signal, onProgress);
      const tokenizerJson = tokenizer && (await openSource(tokenizer, signal, onProgress));
      const words = tokenizerJson ? { tokenizerJson: tokenizerJson.read(0, tokenizerJson.size) } : 'characters';
      return this.#hold(ModelHandle.fromScratch(config, words, corpus.read(0, corpus.size)));
    },
    'model.tokenize': async ({ text }) => Array.from(this.#opened().tokenize(text)),
    'model.estimate': async ({ config }) => parsed.estimate(estimate(this.#opened(), config)),
    'model.preview': async ({ config, steps }) => Array.from(previewSchedule(config, steps)),
    'trainer.create': (ask, { signal, onProgress }) =>
      this.#locked(ask.run, async () => {
        const model = this.#opened();
        const data = await openSource(ask.data, signal, onProgress);
        onProgress(phase('compile'));
        await this.#device();
        if (signal.aborted) throw aborted('the start');
        refuseSkip(ask.driver, JSON.parse(ask.config));
        onProgress(phase('upload'));
        const session = await Session.create(model, data, ask.config);
        if (signal.aborted) {
          session.free();
          throw aborted('the start');
        }
        const info = await this.#install({ session, data, run: ask.run, label: ask.label, keepData: ask.keepData, driver: ask.driver });
        // Only now: what was refused may be tried again with this model.
        model.free();
        this.#model = undefined;
        onProgress(ready);
        return info;
      }),
    'trainer.resume': (ask, { signal, onProgress }) =>
      this.#locked(ask.run, async () => {
        await this.#store.sweep();
        const present = this.#trainer?.parts.run === ask.run ? this.#trainer.parts : undefined;
        onProgress(phase('verify'));
        const { manifest, files, warnings } = await this.#store.load(ask.run, ask.generation, signal, onProgress);
        const record = await this.#store.runRecord(ask.run);
        const kept = ask.data || present ? undefined : await this.#store.runData(ask.run);
        const data = ask.data ? await openSource(ask.data, signal, onProgress) : (present?.data ?? (kept && blobSource(record.dataName, kept)));
        if (!data) throw new TabtuneError('BAD_OPTION', 'the training data of this run was not kept: give the same file as `data`', { code: 'data.missing', path: 'data' });
        const driver = ask.driver ?? driverShape(JSON.parse(record.driver), 'driver');
        await this.#device();
        if (signal.aborted) throw aborted('the resume');
        onProgress(phase('upload'));
        const session = await Session.resume([...files].map(([name, blob]) => blobSource(name, blob)), data, ask.config, ask.override ?? []);
        const info = await this.#install({ session, data, run: ask.run, label: manifest.label, keepData: record.data !== undefined, driver });
        for (const warning of warnings) this.#trained().warn(info.completedSteps, warning);
        onProgress(ready);
        return info;
      }),
    'trainer.inspect': () => this.#trained().inspect(),
    'trainer.evaluate': ({ maxBatches }) => this.#trained().evaluate(maxBatches),
    'trainer.profile': ({ steps }, { signal }) => this.#trained().profile(steps, signal),
    'trainer.sample': ({ stream, prompt, options }, { signal }) =>
      this.#trained().sample(prompt, options, signal, (token) => this.post({ type: 'token', stream, token })).then(() => undefined),
    'loop.run': ({ maxSteps }, { signal }) => this.#trained().run(maxSteps, signal),
    'loop.pause': () => this.#trained().halt('paused').then(() => undefined),
    'loop.stop': () => this.#trained().halt('stopped').then(() => undefined),
    'rate.set': ({ rate }) => this.#trained().setLearningRate(rate).then(() => undefined),
    'schedule.decay': () => this.#trained().startDecay().then(() => undefined),
    'schedule.preview': ({ steps }) => this.#trained().preview(steps),
    'checkpoint.save': () => this.#trained().save(),
    'checkpoint.list': ({ run }) => this.#store.list(run),
    'checkpoint.remove': ({ run, generation }) => this.#store.remove(run, generation).then(() => undefined),
    'checkpoint.export': ({ run, generation }, { signal, onProgress }) => this.#store.exportFile(run, generation, signal, onProgress),
    'checkpoint.import': ({ blob }, { signal, onProgress }) => this.#store.importFile(blob, signal, onProgress),
    'model.export': ({ format, container }, { signal }) => this.#trained().exportModel(format, container, signal),
  };
}

/** With gradient release a step whose norm is not finite has changed parameters: there is nothing to skip. */
function refuseSkip(driver: Driver, config: unknown): void {
  const release: unknown = Reflect.get(Object(config), 'gradient_release');
  if (driver.onNonFinite === 'skip' && release === true) throw badOption('onNonFinite', "'stop' with gradientRelease, which updates parameters before the norm is known", 'skip');
}
