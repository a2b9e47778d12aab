/** Texts that the model writes, newest first. */
import { escaped } from 'tabtune';
import type { Finding, Trainer } from 'tabtune';

import { byId, make } from '../dom.js';
import { grouped } from '../format.js';
import { chosenPrompt } from '../prompt.js';
import { sampling } from '../settings.js';
import { begun } from '../words.js';

/** Number of entries shown; the log contains all of them. */
export const KEPT = 60;
const TOKENS = 300;
/** Number of seeds from which one is chosen. */
const SEEDS = 1_000_000;

/** Returns the typed seed, or else another one each time. */
function chosenSeed(): number {
  const { value, valueAsNumber } = byId('sample-seed', HTMLInputElement);
  return value === '' ? Math.floor(Math.random() * SEEDS) : valueAsNumber;
}

export class Samples {
  readonly #list = byId('samples', HTMLOListElement);
  readonly #empty = byId('samples-empty', HTMLElement);
  readonly #button = byId('write', HTMLButtonElement);
  #writing: AbortController | undefined;
  #trainer: Trainer | undefined;

  constructor(private readonly onError: (thrown: unknown) => void) {
    byId('sampler', HTMLFormElement).addEventListener('submit', (event) => {
      event.preventDefault();
      if (this.#writing) this.#writing.abort();
      else void this.#write();
    });
  }

  /** Sets the trainer that generates; without one the form is disabled. */
  use(trainer: Trainer | undefined): void {
    this.#writing?.abort();
    this.#trainer = trainer;
    this.#button.disabled = trainer === undefined;
  }

  clear(): void {
    this.#list.replaceChildren();
    this.#empty.hidden = false;
  }

  add(step: number, prompt: string, text: string): void {
    this.#entry(step, prompt).append(text);
  }

  /** Forgets the texts written after `step`. */
  cut(step: number): void {
    for (const item of [...this.#list.children])
      if (item instanceof HTMLElement && Number(item.dataset['step']) > step) item.remove();
    this.#empty.hidden = this.#list.childElementCount > 0;
  }

  /** Adds an entry, to which the model's text is appended; `how` says how its tokens are chosen. */
  #entry(step: number, prompt: string, how = ''): HTMLElement {
    this.#empty.hidden = true;
    const item = make('li');
    item.dataset['step'] = String(step);
    const page = make('p');
    page.append(make('b', prompt));
    item.append(make('span', `Step ${grouped(step)}${how}`, 'when'), page);
    this.#list.prepend(item);
    while (this.#list.childElementCount > KEPT) this.#list.lastElementChild?.remove();
    return page;
  }

  async #write(): Promise<void> {
    const trainer = this.#trainer;
    if (!trainer) return;
    const controller = new AbortController();
    this.#writing = controller;
    this.#button.textContent = 'Stop writing';
    const prompt = chosenPrompt();
    const { temperature } = sampling();
    const seed = chosenSeed();
    // Without spread there is nothing to choose.
    const how = temperature === 0 ? ' · always the likeliest token' : ` · seed ${seed}`;
    try {
      const page = this.#entry(trainer.completedSteps, prompt, how);
      const onWarning = ({ code, message }: Finding): void =>
        page.after(make('span', `${begun(escaped(message))} · ${escaped(code)}`, 'when'));
      const { signal } = controller;
      const options = { temperature, seed, maxTokens: TOKENS, signal, onWarning };
      for await (const token of trainer.sample(prompt, options)) page.append(token.text);
    } catch (thrown) {
      if (!controller.signal.aborted) this.onError(thrown);
    } finally {
      this.#writing = undefined;
      this.#button.textContent = 'Write now';
    }
  }
}
