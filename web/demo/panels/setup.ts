/** The setup of the next run: its model, text and settings, its memory, and the learning rate it plans. */
import { escaped, inspectData, newModel, Trainer } from 'tabtune';
import type { DataInput, Model, ModelInfo, Progress, TrainOptions } from 'tabtune';

import austen from '../assets/pride-and-prejudice.txt?raw';
import { byId, check, checked, nextRun } from '../dom.js';
import { onChoice, onDrop } from '../drop.js';
import type { Take } from '../drop.js';
import { bytes, grouped, parameters } from '../format.js';
import { isTyped } from '../numbers.js';
import type { Trained } from '../optimizers.js';
import { contextOf, formOptions, lookOptions, scratchShape, trainOptions } from '../settings.js';
import { speedKey } from '../speeds.js';
import { ofLarge, suggest } from '../suggestions.js';
import type { OpenAgain } from '../trying.js';
import { showFault } from '../words.js';
import { workerUrl } from '../worker.js';
import { AdvancedFold } from './advanced-fold.js';
import { DataPanel, isLarge, LOOKED_AT } from './data.js';
import type { DownloadsPanel } from './downloads.js';
import type { FitPanel } from './fit.js';
import { ModelChoice } from './model-choice.js';
import { showFindings } from './model-findings.js';
import { PlanPanel } from './plan.js';
import type { Planning } from './plan.js';
import { tellStory } from './story.js';

const AUSTEN = { text: austen, name: 'pride-and-prejudice.txt' };
/** Number of parameters above which an adapter is preselected. */
const LARGE = 10_000_000;

export class Setup {
  readonly #choice: ModelChoice;
  #dataFiles: readonly File[] = [];
  /** Number of times that data files were chosen. */
  #dataCount = 0;
  #model: { key: string; opened: Promise<Model> } | undefined;
  /** The chosen model for which the kinds of training were last offered. */
  #offered = '';
  #timer: ReturnType<typeof setTimeout> | undefined;
  #showing: Promise<void> = Promise.resolve();
  #round = 0;
  /** True while a run is open, whose heading does not follow the form. */
  #runOpen = false;
  readonly #lesson = new DataPanel();
  readonly #fault = byId('setup-fault', HTMLElement);
  readonly #advanced: AdvancedFold;
  readonly #plan: PlanPanel;

  constructor(planning: Planning, downloads: DownloadsPanel) {
    this.#plan = new PlanPanel(planning);
    const fail = (thrown: unknown): void => showFault(this.#fault, thrown);
    this.#choice = new ModelChoice(() => this.refresh(0), fail, downloads);
    this.#advanced = new AdvancedFold(() => formOptions(this.trained), fail);
    for (const part of nextRun())
      part.addEventListener('input', ({ target }) => {
        if (!this.#choice.isTypedIn(target)) this.refresh(250);
      });
    const taken: Take = (files, left) => {
      byId('data-left', HTMLElement).textContent = left;
      if (files.length === 0) return;
      this.#dataFiles = files;
      this.#dataCount += 1;
      check('data', 'file');
      this.refresh(0);
    };
    onChoice(byId('data-file', HTMLInputElement), taken);
    onDrop(byId('drop-data', HTMLElement), taken, fail);
    downloads.onRemoved((names) => {
      if (this.#choice.forget(names)) this.release();
    });
  }

  get data(): DataInput {
    if (checked('data') !== 'file') return AUSTEN;
    const [first] = this.#dataFiles;
    if (!first) throw new Error('Choose a text file first, or train on Pride and Prejudice.');
    return this.#dataFiles.length > 1 ? this.#dataFiles : first;
  }

  get dataLabel(): string {
    const [first, ...more] = this.#dataFiles;
    return checked('data') === 'file'
      ? `${first?.name ?? 'text'}${more.length > 0 ? ` and ${more.length} more` : ''}`
      : 'Pride and Prejudice';
  }

  get label(): string {
    return `${this.#choice.isOpened ? this.#choice.name : 'small Llama'} on ${this.dataLabel}`;
  }

  /** Part of the chosen model that is trained. */
  get trained(): Trained {
    if (!this.#choice.isOpened) return 'fresh';
    return checked('trained') === 'adapter' ? 'adapter' : 'all';
  }

  get options(): TrainOptions & { steps: number; seqLen: number } {
    return { ...trainOptions(this.trained), ...this.#columns };
  }

  get fit(): FitPanel {
    return this.#plan.fit;
  }

  /** Identifies all that the duration of a step depends on. */
  get speedKey(): string {
    return speedKey(this.label, this.options);
  }

  get #columns(): Pick<TrainOptions, 'columns'> {
    const { columns } = this.#lesson;
    return columns ? { columns } : {};
  }

  /** Offers the kinds of training for the model; for a large one the adapter is preselected. */
  #offer({ parameters: count }: ModelInfo): void {
    const { isOpened, key } = this.#choice;
    byId('trained', HTMLFieldSetElement).hidden = !isOpened;
    if (!isOpened || this.#offered === key) return;
    this.#offered = key;
    check('trained', count > LARGE ? 'adapter' : 'all');
  }

  /** Shows the heading of the current choice, even of files that are refused later, unless a run is open. */
  #headline(): void {
    if (this.#runOpen) return;
    const text = checked('data') === 'file' ? escaped(this.dataLabel) : 'Austen';
    byId('run-title', HTMLElement).textContent = `${this.#choice.reader} reads ${text}`;
  }

  /** Shows what is trained, below the heading. */
  #story(info: ModelInfo): void {
    if (!this.#runOpen)
      tellStory(info, this.#choice.isOpened ? this.trained : 'fresh', checked('data') === 'file');
  }

  /** Opens the chosen model; returns the same object until the choice changes. */
  #open(): Promise<Model> {
    const { columns } = this.#lesson;
    const { isOpened, key: model } = this.#choice;
    const fresh = [checked('data'), this.#dataCount, contextOf(), columns];
    const key = JSON.stringify([model, ...(isOpened ? [] : fresh)]);
    if (this.#model?.key === key) return this.#model.opened;
    this.release();
    const opened = isOpened
      ? this.#choice.open()
      : newModel(scratchShape(), this.data, columns ? { workerUrl, columns } : { workerUrl });
    this.#model = { key, opened };
    opened.catch(() => {
      if (this.#model?.opened === opened) this.#model = undefined;
    });
    return opened;
  }

  /** Shows what the model would learn, and suggests numbers for it. */
  async #teach(data: DataInput, model: Model): Promise<void> {
    const { trained, label } = this;
    const options = { ...lookOptions(trained), ...this.#columns };
    const found = await this.#lesson.show(data, model, options, !isTyped('s-length'));
    if (!found || label !== this.label) return;
    suggest(
      trained,
      label,
      isLarge(data) && trained !== 'fresh'
        ? await ofLarge(data, found, () => inspectData(AUSTEN, { ...options, model }))
        : found,
    );
  }

  /** Shows the beginning of a large text first: the vocabulary of a new model has all characters of its text, which takes a while to read. */
  async #lookAt(data: DataInput): Promise<boolean> {
    if (this.#choice.isOpened || !isLarge(data)) return false;
    const { columns } = this.#lesson;
    const model = await newModel(scratchShape(), data, {
      workerUrl,
      bytes: LOOKED_AT,
      ...(columns ? { columns } : {}),
    });
    try {
      await this.#teach(data, model);
    } finally {
      await model.dispose();
    }
    return true;
  }

  /** Gives the open model to the trainer that `start` makes; if that fails, the model is kept for the next attempt. */
  async handOver(
    start: (model: Model, again: OpenAgain | undefined) => Promise<Trainer>,
  ): Promise<Trainer> {
    const model = await this.#open();
    const held = this.#model;
    this.#model = undefined;
    // Nothing more can be asked of the model for the form.
    this.#round += 1;
    this.#runOpen = true;
    try {
      return await start(model, this.#choice.again);
    } catch (thrown) {
      if (this.#model) await model.dispose();
      else this.#model = held;
      throw thrown;
    } finally {
      this.#choice.show(undefined);
    }
  }

  /** Closes the open model and discards results that are still awaited, because another run takes over the page. */
  leave(): void {
    this.#round += 1;
    this.#runOpen = true;
    this.release();
  }

  /** Shows the choice for the next run, because no run is open. */
  comeBack(): void {
    this.#runOpen = false;
    this.refresh(0);
  }

  /** Closes the open model, if any. */
  release(): void {
    this.#choice.stop();
    void this.#model?.opened.then((model) => model.dispose()).catch(() => undefined);
    this.#model = undefined;
  }

  /** Shows the effects of the current choice, after `delay` milliseconds without another change. */
  refresh(delay: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.show(), delay);
  }

  /** Shows the progress of a start. */
  showProgress(progress: Progress): void {
    this.#choice.show(progress);
  }

  /**
   * Waits until the effects of the current choice are shown, among them the prompt that its data suggest. A name that was typed and not opened is
   * opened now; the signal stops that.
   */
  settle(signal: AbortSignal): Promise<void> {
    this.#choice.renew();
    signal.addEventListener('abort', () => this.#choice.stop(), { once: true });
    return this.#timer === undefined ? this.#showing : this.show();
  }

  show(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    return (this.#showing = this.#show());
  }

  async #show(): Promise<void> {
    const round = ++this.#round;
    let data: DataInput | undefined;
    this.#headline();
    try {
      data = this.data;
      byId('data-facts', HTMLElement).textContent =
        checked('data') === 'file'
          ? this.#dataFiles.map(({ name, size }) => `${escaped(name)}, ${bytes(size)}`).join('; ')
          : `${bytes(austen.length)} of text, embedded in this page`;
      const looked = await this.#lookAt(data);
      if (round !== this.#round) return;
      const model = await this.#open();
      if (round !== this.#round) return;
      const { info } = model;
      const tokenizer = info.tokenizer?.kind ?? 'none';
      showFindings(model.warnings);
      byId('model-facts', HTMLElement).textContent =
        `${escaped(info.architecture)}, ${parameters(info.parameters)} parameters in ${info.tensors.length} tensors, vocabulary ${grouped(info.vocabSize)} (${escaped(tokenizer).replaceAll('_', ' ')})`;
      this.#offer(info);
      suggest(this.trained, this.label, undefined);
      if (!looked) await this.#teach(data, model);
      if (round !== this.#round) return;
      const { options, trained, speedKey } = this;
      this.#story(info);
      const next = { options, trained, speedKey, canMeasure: this.#choice.isKept };
      await this.#plan.show(model, next, () => round === this.#round);
      if (round !== this.#round) return;
      this.#advanced.mark();
      this.#fault.hidden = true;
    } catch (thrown) {
      if (round !== this.#round) return;
      this.#advanced.mark(thrown);
      this.#plan.none();
      if (data && (await this.#lesson.refuse(data, thrown))) return;
      if (this.#choice.shows(thrown)) this.#fault.hidden = true;
      else showFault(this.#fault, thrown);
    }
  }
}
