/** The step at the end: what can be taken away of the run that is open. Its list is loaded when the first run rests. */
import { byId } from '../dom.js';
import { faultOf } from '../words.js';
import type { PageState } from './controls.js';
import type { Taken } from './places.js';
import type { Around, TakeList } from './take-list.js';

const RESTING: readonly PageState[] = ['paused', 'done', 'stopped', 'failed', 'lost'];

export class TakePanel {
  readonly #said = byId('take-said', HTMLElement);
  readonly #box = byId('take-list', HTMLElement);
  readonly #first = this.#said.textContent;
  #list: Promise<TakeList> | undefined;

  constructor(
    /** Returns the run that is open. */
    private readonly taken: () => Taken | undefined,
    private readonly around: Around,
  ) {}

  /** Shows what can be taken away in this state of the page. */
  show(state: PageState): void {
    const taken = RESTING.includes(state) ? this.taken() : undefined;
    this.#box.hidden = taken === undefined;
    this.#said.hidden = taken !== undefined;
    this.#said.textContent =
      state === 'running' || state === 'recovering'
        ? 'Pause the run, or wait for its end: then the model can be taken away as it is.'
        : this.#first;
    this.#list ??= taken && import('./take-list.js').then((of) => new of.TakeList(this.around));
    this.#list
      ?.then((list) => list.show(taken))
      .catch((thrown: unknown) => {
        this.#said.textContent = faultOf(thrown);
        this.#said.hidden = false;
      });
  }
}
