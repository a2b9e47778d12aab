import { chatted, detokenized, sampled, scored } from './asking.js';
import type { Asker, ChatMessage, ChatOptions, Scorable, ScoreOptions } from './asking.js';
import type { PreviewOptions } from './call.js';
import {
  boolean,
  naturalNumber,
  notNegative,
  objectOf,
  planned,
  positiveInteger,
} from './checks.js';
import { aborted } from '../protocol/errors.js';
import { dropBase } from './bases.js';
import type { Exports } from './export-options.js';
import { estimated } from './estimating.js';
import { exportsOf } from './exporting.js';
import { optionsOf, ownFields } from './given.js';
import type { DataInput } from './data-inputs.js';
import type { Link } from './link.js';
import { RunLoop } from './loop.js';
import type { RunOptions } from './loop.js';
import type { Model } from './model.js';
import type { TrainOptions } from './options.js';
import type {
  CheckpointInfo,
  DataPreview,
  DataReport,
  EvalReport,
  ExportChoice,
  ModelDetails,
  Profile,
  SampledToken,
  Score,
  SessionInfo,
} from '../protocol/reports.js';
import type {
  HistoryEntry,
  SampleEnd,
  StepEvent,
  TrainerEvent,
  TrainerState,
} from '../protocol/events.js';
import type { SampleOptions } from '../protocol/generated/settings.js';
import type { Recovery } from './recovery.js';
import { WorkerLoss } from './worker-loss.js';
import { evaluatedRows } from './row-metrics.js';
import type { RowsOptions, RowsReport } from './row-metrics.js';
import type {
  CreateOptions,
  DisposeOptions,
  Estimate,
  ResumeOptions,
  SaveOptions,
} from './run-options.js';
import { Checkpoints } from './runs.js';
import { settingsOf } from './settings.js';
import type { SettingsInUse } from './settings.js';
import type { AskedOptions } from './sampling.js';
import { RunStatus, TrainerTarget } from './status.js';
import type { TrainerSnapshot } from './status.js';
import { created, resumed } from './starts.js';
import type { Started } from './starts.js';
import type { RunLock } from '../protocol/run-lock.js';
import { dropTokens } from '../protocol/token-files.js';
import { watchVisibility } from './visibility.js';

/** One training run in one worker. */
export class Trainer extends TrainerTarget {
  /** Identifier of the run in storage. */
  readonly runId: string;
  /** The saved states of this run. */
  readonly checkpoints: Checkpoints;
  /** Exports the model for other programs, to a folder, a file or a stream, while it is produced. Resolves to its receipt. */
  readonly exportTo: Exports['exportTo'];
  /** Returns the same export as one File with a name and a type: a zip of a folder, or the single file. */
  readonly export: Exports['export'];
  /** Returns the same export file by file, including the receipt. */
  readonly exportFiles: Exports['exportFiles'];
  /** Settings of the run, and the reasons of those that were chosen for it. */
  readonly settings: SettingsInUse;
  /** Report on the training data and how they are learned: forms, rows, tokens, lengths, sequences, warnings. */
  readonly data: DataReport;
  readonly #link: Link;
  readonly #lock: RunLock;
  readonly #recovery: Recovery;
  readonly #status: RunStatus;
  readonly #workerLoss: WorkerLoss;
  readonly #loop: RunLoop;
  readonly #unwatch: () => void;
  readonly #ask: Asker = (tag, ask, options) => this.#link.call(tag, ask, options);

  private constructor({ link, lock, info, recovery }: Started) {
    super();
    this.runId = info.run;
    this.settings = settingsOf(info);
    this.data = info.data;
    this.#link = link;
    this.#lock = lock;
    this.#recovery = recovery;
    const status = new RunStatus(info.completedSteps, info.totalSteps, this);
    this.#status = status;
    this.subscribe = status.subscribe;
    this.#loop = new RunLoop(link, status);
    this.#workerLoss = new WorkerLoss(status, this.#loop, recovery, () => lock.release(), info);
    link.handTo(this.#workerLoss);
    this.checkpoints = Checkpoints.of(link, info.run, {
      alone: (work) => this.#loop.alone(work, 'pause it before a checkpoint is loaded'),
      loaded: (loaded) => this.#workerLoss.loaded(loaded),
    });
    ({
      exportTo: this.exportTo,
      export: this.export,
      exportFiles: this.exportFiles,
    } = exportsOf((...of) => this.#ask('model.export', ...of), undefined, info.adapter !== null));
    this.#unwatch = watchVisibility(link);
    this.#workerLoss.warn(info.warnings);
    if (lock.warning) status.warn(lock.warning);
  }

  /** Starts a new run. Unknown options are BAD_OPTION; after a refusal `model` can be used again. */
  static async create(options: CreateOptions): Promise<Trainer> {
    return new Trainer(await created(options));
  }

  /** Continues a saved run from its last saved step, bit for bit. */
  static async resume(options: ResumeOptions): Promise<Trainer> {
    return new Trainer(await resumed(options));
  }

  /** Estimates the GPU memory of a run with these options, before any is allocated. */
  static async estimate(model: Model, options: TrainOptions = {}): Promise<Estimate> {
    return estimated(model, options);
  }

  /** Returns the first `show` examples (default: 3) token by token, as the run learns them. */
  async previewData(options: { show?: number | undefined } = {}): Promise<DataPreview> {
    const { show = 3 } = optionsOf(options, 'the preview', ['show']);
    return this.#link.call('trainer.preview', { show: Number(naturalNumber(show, 'show')) });
  }

  /** State of the run in a word. */
  get state(): TrainerState {
    return this.#status.state;
  }

  /** State, step and last reports of the run: the same object until something changes, as React's `useSyncExternalStore` requires. */
  get snapshot(): TrainerSnapshot {
    return this.#status.snapshot;
  }

  /** Calls `listener` after every change of the snapshot. Returns the function that ends this. */
  readonly subscribe: (listener: () => void) => () => void;

  /** Number of complete steps. */
  get completedSteps(): number {
    return this.#status.step;
  }

  /** Trains and yields every event until the run is done, stopped or aborted. Leaving the `for await` loop pauses the run. */
  run(options: RunOptions = {}): AsyncGenerator<TrainerEvent, void> {
    const { maxSteps } = ownFields(objectOf(options, 'options') as RunOptions);
    if (maxSteps !== undefined) positiveInteger(maxSteps, 'maxSteps');
    return this.#loop.run(options, () => this.#workerLoss.settle());
  }

  /** Makes exactly `count` steps, fewer only if it is stopped, and returns their reports. Throws BUSY while a run makes steps. */
  async step(count = 1, options: { signal?: AbortSignal | undefined } = {}): Promise<StepEvent[]> {
    const { signal } = optionsOf(options, 'the steps', ['signal']);
    positiveInteger(count, 'count');
    const reports = await this.#loop.step(count, signal);
    this.#workerLoss.settle();
    return reports;
  }

  /** Measures the GPU time of each kernel in the next `steps` steps, which this slows down. Like `step`, only while no run is in progress. */
  async profile(steps = 1, options: { signal?: AbortSignal | undefined } = {}): Promise<Profile> {
    positiveInteger(steps, 'steps');
    return this.#loop.profile(steps, optionsOf(options, 'the profile', ['signal']).signal);
  }

  /** Pauses the run; resolves after the current step. The iterator of `run` stays open. */
  pause(): Promise<void> {
    return this.#loop.pause();
  }

  /** Lets a paused run continue, in the loop over `run` that is waiting. */
  async resume(): Promise<void> {
    this.#loop.resume();
  }

  /** Ends `run` after the current step. The trainer can still evaluate, sample, save and export. */
  stop(): Promise<void> {
    return this.#loop.stop();
  }

  /** Sets the learning rate manually from the next step on; `undefined` returns control to the schedule. */
  async setLearningRate(rate: number | undefined): Promise<void> {
    if (rate !== undefined) notNegative(rate, 'rate');
    this.#recovery.journal.add({ set: 'rate', rate }, await this.#link.call('rate.set', { rate }));
  }

  /** Starts the decay of a `wsd` schedule or the annealing of an `infinite` one immediately; a start that is already planned or past is kept. */
  async startDecay(): Promise<void> {
    this.#recovery.journal.add(
      { set: 'decay' },
      await this.#link.call('schedule.decay', undefined),
    );
  }

  /** Returns the planned learning rates of steps 1 to `steps`, or of every `stride`-th of them: at most 100,000 rates. */
  async previewSchedule(steps: number, options: PreviewOptions = {}): Promise<number[]> {
    const { stride } = optionsOf(options, 'the preview', ['stride']);
    return this.#link.call('schedule.preview', planned(steps, stride));
  }

  /** Returns mean loss, perplexity and accuracy over the validation part of the data. */
  async evaluate(
    options: { maxBatches?: number | undefined; signal?: AbortSignal | undefined } = {},
  ): Promise<EvalReport> {
    const { maxBatches, signal } = optionsOf(options, 'the evaluation', ['maxBatches', 'signal']);
    if (maxBatches !== undefined) naturalNumber(maxBatches, 'maxBatches');
    return this.#link.call('trainer.evaluate', { maxBatches }, { signal });
  }

  /**
   * Yields tokens as they are generated; leaving the loop ends the generation. Returns why the text ended: `stop` (a token that ends a text),
   * `length` (`maxTokens` reached) or `context` (the context is full).
   */
  sample(
    prompt: string,
    options: SampleOptions & AskedOptions = {},
  ): AsyncGenerator<SampledToken, SampleEnd | undefined> {
    return sampled(this.#ask, prompt, options);
  }

  /** Yields the tokens of the answer to a conversation, as `sample` does, with a prompt written by the chat template; the end of the turn ends it. */
  chat(
    messages: readonly ChatMessage[],
    options: ChatOptions = {},
  ): AsyncGenerator<SampledToken, SampleEnd | undefined> {
    return chatted(this.#ask, messages, options);
  }

  /** Returns the probability of each token of a text, of token ids, or of messages as the chat template writes them, and the mean loss. */
  score(of: Scorable, options: ScoreOptions = {}): Promise<Score> {
    return scored(this.#ask, of, options);
  }

  /** Evaluates a custom metric: computes a number for each row of the data from the probabilities of its tokens, and the mean over all rows. */
  evaluateRows(data: DataInput, options: RowsOptions): Promise<RowsReport> {
    return evaluatedRows(this.#ask, data, options);
  }

  /** Returns the text of token ids, including special tokens. */
  detokenize(ids: readonly number[] | Uint32Array): Promise<string> {
    return detokenized(this.#ask, ids);
  }

  /** Returns every step, evaluation and sample of the run so far, including those before a resume. */
  history(): Promise<HistoryEntry[]> {
    return this.#link.call('trainer.history', undefined);
  }

  /** Saves the present state, as `checkpoints.save` does. */
  save(options: SaveOptions = {}): Promise<CheckpointInfo> {
    return this.checkpoints.save(options);
  }

  /** Returns the forms in which this run can be exported, before its first step as after it, and for each other form the reason why not. */
  async exports(): Promise<ExportChoice[]> {
    return (await this.details()).exports;
  }

  /** Returns the forms of export, what import and export preserve, and the files that training started from. */
  details(): Promise<ModelDetails> {
    return this.#link.call('model.details', undefined);
  }

  /** Returns settings, progress, model, adapter and base of the run. */
  info(): Promise<SessionInfo> {
    return this.#link.call('trainer.inspect', undefined);
  }

  /** Ends the worker and frees everything. Unsaved steps are lost, except with `save`; if that save fails, it rejects once all is freed. */
  async dispose(options: DisposeOptions = {}): Promise<void> {
    const { save = false } = optionsOf(options, 'the end', ['save']);
    boolean(save, 'save');
    try {
      if (save) await this.#loop.last(() => this.#workerLoss.unsaved && this.save());
    } finally {
      this.#unwatch();
      this.#link.close(aborted('the trainer'));
      this.#loop.close();
      this.#lock.release();
      void dropTokens();
      // Nothing else needs the base of a run that no resume can find.
      if (!this.#recovery.kept) dropBase(this.runId);
    }
  }
}
