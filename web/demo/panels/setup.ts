/** The setup of the next run: its model, text and settings, its memory, and the learning rate it plans. */
import { inspectData, newModel, Trainer } from 'tabtune';
import type { DataInput, Model, ModelInfo, Progress, TrainOptions } from 'tabtune';

import { byId, check, checked, nextRun } from '../dom.js';
import type { Take } from '../drop.js';
import { isTyped } from '../numbers.js';
import type { Trained } from '../optimizers.js';
import { contextOf, formOptions, lookOptions, scratchShape, trainOptions } from '../settings.js';
import { speedKey } from '../speeds.js';
import { ofLarge, suggest } from '../suggestions.js';
import type { OpenAgain } from '../subject.js';
import { placeOf } from '../words.js';
import type { Place } from '../words.js';
import { workerUrl } from '../worker.js';
import { AdvancedFold } from './advanced-fold.js';
import { AUSTEN, DataChoice } from './data-choice.js';
import { DataPanel, isLarge, LOOKED_AT } from './data.js';
import type { DownloadsPanel } from './downloads.js';
import type { FitPanel } from './fit.js';
import { ModelChoice } from './model-choice.js';
import { showModel } from './model-findings.js';
import { PlanPanel } from './plan.js';
import type { Planning } from './plan.js';
import { Refusals } from './refusals.js';
import type { StartGate } from './start-gate.js';
import { tellStory } from './story.js';

/** Number of parameters above which an adapter is preselected. */
const LARGE = 10_000_000;

export class Setup {
  readonly #choice: ModelChoice;
  readonly #data: DataChoice;
  #model: { key: string; opened: Promise<Model> } | undefined;
  /** The chosen model for which the kinds of training were last offered. */
  #offered = '';
  #timer: ReturnType<typeof setTimeout> | undefined;
  #showing: Promise<void> = Promise.resolve();
  #round = 0;
  /** True while a run is open, whose heading does not follow the form. */
  #runOpen = false;
  readonly #lesson = new DataPanel();
  readonly #refusals: Refusals;
  readonly #plan: PlanPanel;
  /** The model and data of which everything is known. */
  #known = '';

  constructor(
    planning: Planning,
    downloads: DownloadsPanel,
    private readonly gate: StartGate,
  ) {
    this.#plan = new PlanPanel(planning);
    const fail = (place: Place) => (thrown: unknown) => this.#refusals.taking(place)(thrown);
    const model = new ModelChoice(() => this.#changed('model'), fail('model'), downloads);
    const data = new DataChoice(() => this.#changed('data'), fail('data'));
    const advanced = new AdvancedFold(() => formOptions(this.trained), fail('train'));
    [this.#choice, this.#data] = [model, data];
    this.#refusals = new Refusals({ model, data, lesson: this.#lesson, gate, advanced });
    for (const part of nextRun())
      part.addEventListener('input', ({ target }) => {
        if (!this.#choice.isTypedIn(target)) this.#changed(placeOf(target), 250);
      });
    downloads.onRemoved((names) => {
      if (this.#choice.forget(names)) this.release();
    });
  }

  get data(): DataInput {
    return this.#data.data;
  }

  get dataLabel(): string {
    return this.#data.name;
  }

  /** Takes files that were dropped anywhere on the page. */
  get takes(): Readonly<Record<'model' | 'data', Take>> {
    return { model: this.#choice.take, data: this.#data.take };
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
    byId('run-title', HTMLElement).textContent = `${this.#choice.reader} reads ${this.#data.short}`;
  }

  /** Opens the chosen model; returns the same object until the choice changes. */
  #open(): Promise<Model> {
    const { columns } = this.#lesson;
    const { isOpened, key: model } = this.#choice;
    const fresh = [this.#data.key, contextOf(), columns];
    const key = JSON.stringify([model, ...(isOpened ? [] : fresh)]);
    if (this.#model?.key === key) return this.#model.opened;
    this.release();
    this.gate.close(
      isOpened ? 'The model is being opened …' : 'The model is being made for the text …',
    );
    const opened = isOpened
      ? this.#choice.open()
      : newModel(scratchShape(), this.data, { workerUrl, ...this.#columns });
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
    if (label !== this.label) return;
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
    const part = { workerUrl, bytes: LOOKED_AT, ...this.#columns };
    const model = await newModel(scratchShape(), data, part);
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

  /** Shows why a start failed, next to its cause, until something is changed. */
  failed(thrown: unknown): void {
    this.#refusals.failed(thrown);
  }

  /** Removes the faults of what was changed, and shows the effects of the change. */
  #changed(place: Place, delay = 0): void {
    this.#refusals.changed(place, 'train');
    this.refresh(delay);
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
    this.#refusals.failed(undefined);
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
    const isCurrent = (): boolean => round === this.#round;
    let data: DataInput | undefined;
    let place: Place = 'data';
    const choice = `${this.#choice.key} ${this.#data.key}`;
    if (choice !== this.#known) this.gate.close('The model and the text are being read …');
    this.#headline();
    await this.#choice.settleName();
    if (!isCurrent()) return;
    this.#headline();
    try {
      byId('data-facts', HTMLElement).textContent = this.#data.facts;
      data = await this.#data.read();
      if (!isCurrent()) return;
      const looked = await this.#lookAt(data);
      if (!isCurrent()) return;
      if (this.#choice.isOpened) place = 'model';
      const model = await this.#open();
      if (!isCurrent()) return;
      place = 'train';
      const { info } = model;
      showModel(info, model.warnings);
      this.#offer(info);
      suggest(this.trained, this.label, undefined);
      if (!looked) await this.#teach(data, model);
      if (!isCurrent()) return;
      const { options, trained, speedKey } = this;
      if (!this.#runOpen) tellStory(info, trained, checked('data') !== 'austen');
      const next = { options, trained, speedKey, canMeasure: this.#choice.isKept };
      await this.#plan.show(model, next, isCurrent);
      if (!isCurrent()) return;
      this.#known = choice;
      await this.#refusals.accept(data, isCurrent);
    } catch (thrown) {
      if (!isCurrent()) return;
      this.#known = place === 'train' ? choice : '';
      this.#plan.none();
      await this.#refusals.refuse(thrown, place, data, isCurrent);
    }
  }
}
