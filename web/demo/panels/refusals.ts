/** Why the next run cannot start, or the last start failed: shown next to the cause, and in a few words next to Train. */
import type { DataInput } from 'tabtune';

import { byId } from '../dom.js';
import { Refused, Unchosen } from '../words.js';
import type { Place } from '../words.js';
import type { AdvancedFold } from './advanced-fold.js';
import type { DataChoice } from './data-choice.js';
import type { DataPanel } from './data.js';
import { Faults, placeOf } from './faults.js';
import type { ModelChoice } from './model-choice.js';
import type { StartGate } from './start-gate.js';

/** Why Train is off, by what was refused. */
const REASONS: Readonly<Record<Place, string>> = {
  model: 'This model cannot be trained; the reason is given with it.',
  data: 'These data cannot be used yet; the reason is given with them.',
  train: 'These settings cannot be used; the reason is given in red.',
};

interface Parts {
  model: ModelChoice;
  data: DataChoice;
  lesson: DataPanel;
  gate: StartGate;
  advanced: AdvancedFold;
}

export class Refusals {
  readonly #faults = new Faults();
  #failed: unknown;

  constructor(private readonly parts: Parts) {}

  /** Notes why a start failed, which is shown until something is changed. */
  failed(thrown: unknown): void {
    this.#failed = thrown;
  }

  /** Removes the faults of these places, where something was changed. */
  changed(...places: readonly Place[]): void {
    this.#failed = undefined;
    this.#faults.clear(places);
    if (places.includes('data')) this.parts.lesson.forget(false);
  }

  /** Shows that a run can start with what is chosen. */
  async accept(data: DataInput, isCurrent: () => boolean): Promise<void> {
    this.parts.gate.open();
    this.parts.advanced.mark(this.#failed);
    if (this.#failed === undefined) this.#faults.clear();
    else await this.#explain(this.#failed, placeOf(this.#failed), data, isCurrent);
  }

  /** Shows why what was chosen cannot be used, and keeps it from being trained; `data` are those that were read. */
  async refuse(
    thrown: unknown,
    place: Place,
    data: DataInput | undefined,
    isCurrent: () => boolean,
  ): Promise<void> {
    const { gate, lesson, advanced } = this.parts;
    advanced.mark(thrown);
    if (place !== 'train') byId('model-facts', HTMLElement).textContent = '';
    if (thrown instanceof Refused && thrown.place === 'data') lesson.forget(true);
    if (thrown instanceof Unchosen) {
      this.#faults.clear();
      return gate.close(thrown.message, thrown.place);
    }
    const shown = await this.#explain(thrown, place, data, isCurrent);
    if (!isCurrent()) return;
    // A name of the hub can be asked for again, also by Train.
    if (shown === 'hub') gate.open();
    else gate.close(REASONS[shown], shown);
  }

  /** Shows a fault next to its cause, and returns where. */
  async #explain(
    thrown: unknown,
    place: Place,
    data: DataInput | undefined,
    isCurrent: () => boolean,
  ): Promise<Place | 'hub'> {
    const { model, data: choice, lesson } = this.parts;
    const isData =
      data !== undefined && ((await choice.asks(thrown)) || (await lesson.refuse(data, thrown)));
    if (isData || model.shows(thrown)) {
      if (isCurrent()) this.#faults.clear();
      return isData ? 'data' : 'hub';
    }
    const at = thrown instanceof Refused ? thrown.place : place;
    if (isCurrent()) this.#faults.show(thrown, at);
    return at;
  }

  /** Shows why dropped files cannot be taken. */
  readonly taking =
    (place: Place) =>
    (thrown: unknown): void =>
      this.#faults.show(thrown, place);
}
