/** The buttons and the line below them; the state decides which of them are shown. */
import { escaped } from 'tabtune';

import { byId } from '../dom.js';
import { show } from '../path.js';
import type { Work } from '../waiting.js';

/**
 * State of the page. With `failed` the run stopped at an error and can still be saved; with `lost` its worker or GPU is gone, but not the checkpoint.
 */
export type PageState =
  | 'setup'
  | 'starting'
  | 'running'
  | 'recovering'
  | 'paused'
  | 'done'
  | 'stopped'
  | 'failed'
  | 'lost';
export type Action =
  | 'start'
  | 'pause'
  | 'one'
  | 'stop'
  | 'goon'
  | 'save'
  | 'away'
  | 'take'
  | 'again'
  | 'skip'
  | 'decay'
  | 'longer';

const SHOWN: Record<PageState, Action[]> = {
  setup: ['start', 'goon'],
  starting: ['stop'],
  running: ['pause', 'stop', 'decay', 'save'],
  recovering: ['stop'],
  paused: ['pause', 'one', 'stop', 'save', 'away'],
  done: ['save', 'away', 'again'],
  stopped: ['goon', 'save', 'away', 'again'],
  failed: ['goon', 'save', 'away', 'again'],
  lost: ['goon', 'take', 'again'],
};
const ACTIONS: Action[] = [
  'start',
  'pause',
  'one',
  'stop',
  'decay',
  'goon',
  'save',
  'away',
  'take',
  'again',
];
/** Minimum time between announcements, so that a screen reader is not interrupted while it is speaking. */
const SPOKEN_EVERY_MILLIS = 10_000;

export class Controls {
  readonly #main = byId('main', HTMLElement);
  readonly #status = byId('status', HTMLElement);
  readonly #spoken = byId('spoken', HTMLElement);
  readonly #work = byId('work', HTMLElement);
  readonly #workName = byId('work-name', HTMLElement);
  readonly #workTime = byId('work-time', HTMLElement);
  #state: PageState = 'setup';
  #goOn: string | undefined;
  #decayStart = 0;
  #lastSpoken = -Infinity;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    acts: Record<Action, () => void>,
    /** Is called with each state. */
    private readonly onState: (state: PageState) => void,
  ) {
    for (const action of ACTIONS)
      byId(action, HTMLButtonElement).addEventListener('click', acts[action]);
    byId('skip', HTMLButtonElement).addEventListener('click', acts.skip);
    byId('longer', HTMLFormElement).addEventListener('submit', (event) => {
      event.preventDefault();
      acts.longer();
    });
  }

  get state(): PageState {
    return this.#state;
  }

  /** Sets the label of the button that continues a run; `undefined` hides the button. */
  offer(words: string | undefined): void {
    this.#goOn = words;
    this.#buttons();
  }

  /** Offers to start the decay of the learning rate, until it starts by itself after a step; 0 offers nothing. */
  offerDecay(until: number): void {
    this.#decayStart = until;
    this.#buttons();
  }

  /** Shows what can be done after a step. */
  stepped(step: number): void {
    if (this.#decayStart > 0 && step >= this.#decayStart) this.offerDecay(0);
  }

  show(state: PageState, words?: string): void {
    this.#state = state;
    this.#main.dataset['state'] = state;
    this.#buttons();
    byId('progress', HTMLElement).hidden = state === 'setup';
    if (state === 'starting') {
      byId('numbers', HTMLDetailsElement).open = false;
      show('train');
    } else if (state === 'setup') byId('numbers', HTMLDetailsElement).open = true;
    if (words !== undefined) this.say(words);
    this.onState(state);
  }

  #buttons(): void {
    const active = document.activeElement;
    const shown = SHOWN[this.#state].filter(
      (action) =>
        (action !== 'goon' || this.#goOn !== undefined) &&
        (action !== 'decay' || this.#decayStart > 0),
    );
    byId('longer', HTMLFormElement).hidden = this.#state !== 'done';
    for (const action of ACTIONS) byId(action, HTMLButtonElement).hidden = !shown.includes(action);
    byId('goon', HTMLButtonElement).textContent = this.#goOn ?? '';
    byId('pause', HTMLButtonElement).textContent = this.#state === 'paused' ? 'Resume' : 'Pause';
    byId('stop', HTMLButtonElement).textContent = this.#state === 'starting' ? 'Cancel' : 'Stop';
    // If a focused button is hidden, the first visible one gets the focus.
    if (active instanceof HTMLButtonElement && active.hidden)
      byId(shown[0] ?? 'start', HTMLButtonElement).focus();
  }

  /** Shows a text immediately; screen readers announce only the newest text, and only after a pause. */
  say(words: string): void {
    const safe = escaped(words);
    if (this.#status.textContent === safe) return;
    this.#status.textContent = safe;
    this.#timer ??= setTimeout(
      () => this.#speak(),
      Math.max(0, this.#lastSpoken + SPOKEN_EVERY_MILLIS - performance.now()),
    );
  }

  /**
   * Shows long work, and how long it has taken, which screen readers do not read out every second. They do not read out steps either, which change too
   * often. A sample can be left out.
   */
  showWork(words: string, elapsed: string, work?: Work): void {
    this.#work.hidden = words === '';
    const isStep = work === 'step';
    const name = isStep ? '' : words;
    // The same text set again would be announced again.
    if (this.#workName.textContent !== name) this.#workName.textContent = name;
    this.#workTime.textContent = isStep ? `${words} ${elapsed}` : elapsed;
    byId('skip', HTMLButtonElement).hidden = work !== 'sample';
  }

  #speak(): void {
    this.#timer = undefined;
    this.#lastSpoken = performance.now();
    this.#spoken.textContent = this.#status.textContent;
  }
}
