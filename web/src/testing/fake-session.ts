/** The fake core's sessions: runs whose steps are arithmetic, with their checkpoints and exports. */
import type { JsData, JsSource, Values } from 'tabtune-wasm';
import { called, fake, refuse, slices, unlessLost } from './fake-calls.js';
import { exportedAs, FileStream } from './fake-files.js';
import type { Checkpointed } from './fake-files.js';
import {
  choices,
  complete,
  FACTORS,
  ModelHandle,
  planned,
  reported,
  sizeOf,
} from './fake-model.js';
import type { Config } from './fake-model.js';
import { answered, generated, scoredAs } from './fake-tokens.js';
import type { TokenStream } from './fake-tokens.js';
import { FakeWindow } from './fake-window.js';

interface Progress {
  step: number;
  batch: number;
  weight: number;
  rate?: number;
  decayStart?: number;
}

export class Session {
  #timed = 0;
  readonly #window = new FakeWindow(
    () => this.progress,
    (progress) => (this.progress = progress),
  );
  #warnings: { code: string; message: string }[] = [];
  private constructor(
    readonly model: ModelHandle,
    readonly config: Config,
    readonly dataTokens: number,
    private progress: Progress,
  ) {
    fake.sessions += 1;
  }
  static async create(
    model: ModelHandle,
    data: JsData,
    given: Values,
    allowNonFinite: boolean,
  ): Promise<Session> {
    await called('create');
    if (fake.stepMillis > 0) await slices(4, fake.stepMillis / 4);
    const config = complete(given);
    const seqLen = config.seq_len;
    if (sizeOf(data) < seqLen + 1)
      return refuse(
        'BAD_OPTION',
        'data.too-short',
        `training data too short: need ${seqLen + 1} tokens, have ${sizeOf(data)}`,
        { need: seqLen + 1, have: sizeOf(data) },
      );
    if (fake.nonFinite && !allowNonFinite)
      return refuse('BAD_MODEL_FILE', 'model.non-finite', 'a weight is NaN');
    return new Session(model, config, sizeOf(data), { step: 0, batch: 0, weight: 1 });
  }
  static async resume(
    files: JsSource[],
    data: JsData,
    given: Values | undefined,
    overrides: string[],
    base: JsSource[],
    header = false,
  ): Promise<Session> {
    fake.overrides.push(overrides);
    await called('resume');
    if (fake.stepMillis > 0) await slices(4, fake.stepMillis / 4);
    const file = files.find(({ name }) => name === 'checkpoint.json');
    if (!file)
      return refuse('CHECKPOINT_CORRUPT', 'checkpoint.corrupt', 'checkpoint.json is missing', {
        path: 'checkpoint.json',
      });
    const stored = JSON.parse(new TextDecoder().decode(file.read(0, file.size))) as Checkpointed<
      Progress,
      Config
    >;
    if (stored.config.adapter && base.length === 0)
      return refuse(
        'CHECKPOINT_MISMATCH',
        'checkpoint.base.missing',
        'checkpoint.json: checkpoint.base.missing',
        { want: 'model.gguf' },
      );
    fake.bases.push(
      base.map(({ name, pieces = [] }) => `${name} ${header ? 'header' : pieces.length}`).join(),
    );
    const model = ModelHandle.fromScratch(
      { hidden_size: 128, num_hidden_layers: 4 },
      undefined,
      data,
      {},
      false,
    );
    const changes = (given ?? {}) as Partial<Config>;
    const refused = Object.keys(changes).filter(
      (key) => !overrides.includes(key) && !overrides.includes('all'),
    );
    if (stored.data !== sizeOf(data) && !overrides.includes('data')) refused.push('data');
    if (refused.length > 0)
      return refuse('CHECKPOINT_MISMATCH', 'optim.resume-mismatch', refused.join());
    const session = new Session(model, { ...stored.config, ...changes }, sizeOf(data), {
      ...stored.progress,
      batch: overrides.includes('data') ? 0 : stored.progress.batch,
    });
    if (Object.hasOwn(changes, 'groups'))
      session.#warnings.push({
        code: 'optim.state-dropped',
        message: 'the state of 1 parameter that is frozen now was dropped',
      });
    return session;
  }
  get adapting(): boolean {
    return Boolean(this.config.adapter);
  }
  step(): Promise<unknown> {
    return this.#window.submit(this.config.report_every ?? 1, () => this.#taken());
  }
  settle(): Promise<unknown> {
    return this.#window.settle();
  }
  async #taken(): Promise<unknown> {
    const { progress, config } = this;
    const step = progress.step + 1;
    const { batch_size: batch, seq_len: seq, gradient_accumulation_steps: micro } = config;
    await called('step', step);
    await slices(micro, fake.stepMillis / micro);
    if (fake.failAt === step) {
      fake.failAt = 0;
      throw fake.failWith;
    }
    const loss = fake.loss?.(step) ?? 1.35 + Math.abs(progress.weight);
    // A refused step leaves the data order where it is, as in the core.
    if (fake.badBatches.includes(progress.batch + 1) || !Number.isFinite(loss))
      return refuse(
        'NON_FINITE',
        'train.non-finite',
        `step ${step}: loss is NaN; nothing was changed`,
      );
    fake.batches.push(progress.batch + 1);
    const decayed = progress.decayStart === undefined ? 1 : 1 / (2 + step - progress.decayStart);
    const rate = (progress.rate ?? planned(config, step)) * decayed;
    // The loss depends on all previous rates and batches.
    const weight = progress.weight * (1 - rate) + Math.sin(progress.batch + 1) / 1000;
    this.progress = { ...progress, step, batch: progress.batch + 1, weight };
    this.#timed += 1;
    return {
      step,
      epoch: step / 10,
      loss,
      gradNorm: 0.6 + 1 / step,
      learningRate: rate,
      tokens: batch * seq * micro,
      secs: fake.stepMillis / 1000,
    };
  }
  skipBatch(): void {
    this.progress = { ...this.progress, batch: this.progress.batch + 1 };
  }
  startProfile(): void {
    this.#timed = 0;
  }
  finishProfile(): unknown {
    const kernels = [
      { kernel: 'linear_forward', launches: 29, ms: 7.5, share: 0.75 },
      { kernel: 'Burn: FullKernel', launches: 2, ms: 2.5, share: 0.25 },
    ];
    return {
      steps: this.#timed,
      timing: 'device',
      ms: 10,
      dispatches: 29,
      unmeasured: 0,
      inUseBytes: 3e6,
      reservedBytes: 4e6,
      kernels,
    };
  }
  checkEvaluation(): void {
    if (fake.nothingKept)
      refuse(
        'BAD_OPTION',
        'data.no-validation',
        'evaluation: expected at least 17 tokens of the data kept for it, found 0',
      );
  }
  async evaluate(): Promise<unknown> {
    await called('evaluate', this.progress.step);
    await slices(4, fake.stepMillis / 4);
    const loss = fake.evaluation?.(this.progress.step) ?? 1.45 + Math.abs(this.progress.weight);
    return { loss, perplexity: Math.exp(loss), accuracy: 0.25, tokens: 4096 };
  }
  generate(prompt: string, options: Values): TokenStream {
    return generated(prompt, options, this.progress.step);
  }
  async chat(conversation: Values, options: Values, base: boolean): Promise<TokenStream> {
    return answered(conversation, options, this.progress.step, base);
  }
  score(request: Values, base: boolean): Promise<unknown> {
    return scoredAs(request, base);
  }
  detokenize(ids: Uint32Array): string {
    return this.model.detokenize(ids);
  }
  setLearningRate(rate: number | undefined): void {
    const { rate: _, ...rest } = this.progress;
    this.progress = rate === undefined ? rest : { ...rest, rate };
  }
  startDecay(): void {
    this.progress = {
      ...this.progress,
      decayStart: this.progress.decayStart ?? this.progress.step,
    };
  }
  previewSchedule(points: number, stride: number): Float64Array {
    return Float64Array.from({ length: points }, (_, i) => planned(this.config, 1 + i * stride));
  }
  async confirm(): Promise<void> {
    await called('confirm', this.progress.step);
    unlessLost();
  }
  info(): unknown {
    const { step, rate, decayStart } = this.progress;
    const { schedule } = this.config;
    const scheduleStart =
      decayStart ??
      (schedule?.decay_start_step === undefined || schedule.decay_start_step < 0
        ? undefined
        : schedule.decay_start_step);
    const fallbacks = this.config.optimizer?.type === 'apollo' ? ['model.norm.weight'] : [];
    return {
      completedSteps: step,
      totalSteps: this.config.steps,
      config: this.config,
      chosen: fake.chosen,
      model: this.model.info(),
      adapter: this.adapting ? FACTORS : null,
      base: null,
      dataTokens: this.dataTokens,
      data: reported(this.dataTokens),
      gpuBytes: fake.gpuBytes,
      fallbacks,
      warnings: this.#warnings,
      scheduleStart,
      manualLearningRate: rate,
    };
  }
  rows(data: JsData, config: Values): Promise<unknown> {
    return this.model.rows(data, config);
  }
  dataPreview(show: number): unknown {
    return Array.from({ length: show }, () => ({ row: null, segments: [] }));
  }
  checkpoint(adapter: string): FileStream {
    const { progress, config } = this;
    const weights = new Uint8Array(fake.checkpointBytes).map(
      (_, i) => (i * 31 + progress.step) & 255,
    );
    const head = (pieces: string[]): Checkpointed<Progress, Config> => ({
      progress,
      config,
      data: this.dataTokens,
      environment: { adapter },
      pieces,
    });
    return new FileStream([['model.safetensors', weights]], head);
  }
  details(): unknown {
    return { exports: choices, contract: { step: this.progress.step } };
  }
  async exportModel(options: Values, base: readonly { name: string }[]): Promise<FileStream> {
    await called('export');
    return exportedAs(
      options,
      base,
      new Uint8Array(fake.exportBytes).fill(this.progress.step & 255),
    );
  }
  free(): void {
    fake.sessions -= 1;
  }
}
