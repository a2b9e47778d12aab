/** The button that starts a run: off, with the reason next to it, while something that was chosen cannot be used. */
import { byId, make } from '../dom.js';
import { goTo } from '../path.js';
import type { Place } from '../words.js';

const NAMES: Readonly<Record<Place, string>> = { model: 'Model', data: 'Data', train: 'Settings' };

export class StartGate {
  readonly #start = byId('start', HTMLButtonElement);
  readonly #why = byId('start-why', HTMLElement);
  #possible = false;
  #reason: string | undefined = 'Checking this browser …';

  /** Says that this browser can train. */
  allow(): void {
    this.#possible = true;
    this.#show();
  }

  /** Switches the button off, and says why; the reason is explained at `place`. */
  close(reason: string, place?: Place): void {
    if (this.#reason === reason) return;
    this.#reason = reason;
    this.#why.textContent = reason;
    if (place !== undefined && place !== 'train') {
      const link = make('a', `See ${NAMES[place]}.`);
      link.href = `#view-${place}`;
      link.addEventListener('click', (event) => {
        event.preventDefault();
        goTo(place);
      });
      this.#why.append(' ', link);
    }
    this.#show();
  }

  open(): void {
    this.#reason = undefined;
    this.#show();
  }

  #show(): void {
    this.#start.disabled = !this.#possible || this.#reason !== undefined;
    this.#why.hidden = !this.#possible || this.#reason === undefined;
  }
}
