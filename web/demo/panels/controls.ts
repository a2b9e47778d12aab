/** The buttons and the line below them; which of them are there follows from the state. */
import { escaped } from 'tabtune';

import { byId } from '../dom.js';

export type PageState = 'setup' | 'starting' | 'running' | 'paused' | 'done' | 'stopped' | 'failed';
export type Action = 'start' | 'pause' | 'one' | 'stop' | 'save' | 'export' | 'again';

const SHOWN: Record<PageState, Action[]> = {
  setup: ['start'],
  starting: ['stop'],
  running: ['pause', 'stop', 'save'],
  paused: ['pause', 'one', 'stop', 'save', 'export'],
  done: ['save', 'export', 'again'],
  stopped: ['save', 'export', 'again'],
  failed: ['again'],
};
const ACTIONS: Action[] = ['start', 'pause', 'one', 'stop', 'save', 'export', 'again'];

export class Controls {
  readonly #main = byId('main', HTMLElement);
  readonly #status = byId('status', HTMLElement);
  #state: PageState = 'setup';

  constructor(acts: Record<Action, () => void>) {
    for (const action of ACTIONS) byId(action, HTMLButtonElement).addEventListener('click', acts[action]);
  }

  get state(): PageState {
    return this.#state;
  }

  show(state: PageState, words?: string): void {
    const active = document.activeElement;
    this.#state = state;
    this.#main.dataset['state'] = state;
    for (const action of ACTIONS) byId(action, HTMLButtonElement).hidden = !SHOWN[state].includes(action);
    byId('pause', HTMLButtonElement).textContent = state === 'paused' ? 'Resume' : 'Pause';
    byId('progress', HTMLElement).hidden = state === 'setup';
    if (words !== undefined) this.say(words);
    // A focused button that vanished hands the focus to the first that is there.
    if (active instanceof HTMLButtonElement && active.hidden) byId(SHOWN[state][0] ?? 'start', HTMLButtonElement).focus();
  }

  /** Told aloud by screen readers, so only for what matters. */
  say(words: string): void {
    const safe = escaped(words);
    if (this.#status.textContent !== safe) this.#status.textContent = safe;
  }

  enable(action: Action, enabled: boolean): void {
    byId(action, HTMLButtonElement).disabled = !enabled;
  }
}
