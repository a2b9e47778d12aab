/** Problems during the run and how they were handled: one entry of each kind, with possible remedies. */
import { escaped } from 'tabtune';
import type { TrainerEvent } from 'tabtune';

import { actionButton, byId, make } from '../dom.js';
import { grouped } from '../format.js';
import { begun } from '../words.js';

type Warning = Extract<TrainerEvent, { type: 'warning' }>;
/** Entries that the end of a recovery replaces. */
const LOSSES = [
  'device.lost',
  'device.out-of-memory',
  'core.panic',
  'worker.failed',
  'worker.silent',
]
  .map((code) => `[data-code='${code}']`)
  .join();
/** A possible action in response to a warning. */
export interface Remedy {
  text: string;
  act: () => void;
}

export class Warnings {
  readonly #section = byId('warnings', HTMLElement);
  readonly #list = byId('warning-list', HTMLUListElement);
  readonly #counts = new Map<string, number>();

  constructor(private readonly remedies: (code: string) => Remedy[]) {}

  clear(): void {
    this.#counts.clear();
    this.#list.replaceChildren();
    this.#section.hidden = true;
  }

  add({ step, code, message }: Omit<Warning, 'type'>): void {
    // The entry about the end of a recovery replaces the one about its beginning.
    if (code === 'run.recovered')
      for (const each of this.#list.querySelectorAll<HTMLElement>(LOSSES)) each.remove();
    const count = (this.#counts.get(code) ?? 0) + 1;
    this.#counts.set(code, count);
    const item = make('li');
    item.dataset['code'] = code;
    const times = count === 1 ? '' : `, ${grouped(count)} times`;
    item.append(
      make('p', begun(escaped(message))),
      make('p', `Step ${grouped(step)}${times} · ${escaped(code)}`, 'meta'),
    );
    const acts = make('div', '', 'acts');
    for (const { text, act } of this.remedies(code)) acts.append(actionButton(text, text, act));
    acts.append(actionButton('Dismiss', `Dismiss: ${escaped(message)}`, () => this.#drop(item)));
    item.append(acts);
    const before = [...this.#list.children].find(
      (each) => each instanceof HTMLElement && each.dataset['code'] === code,
    );
    if (before) before.replaceWith(item);
    else this.#list.prepend(item);
    this.#section.hidden = false;
  }

  #drop(item: HTMLElement): void {
    const next = item.nextElementSibling ?? item.previousElementSibling;
    item.remove();
    this.#section.hidden = this.#list.childElementCount === 0;
    // The focus stays close to where the user is looking.
    (next?.querySelector('button') ?? byId('main', HTMLElement)).focus();
  }
}
