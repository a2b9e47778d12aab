/** The step in which a person tries the model. Its panels are loaded when the step is first seen while a run is open. */
import { byId } from './dom.js';
import type { TryPanel } from './panels/try.js';
import type { Subject, TryHost } from './subject.js';
import { codeOf, faultOf } from './words.js';

export class Trying {
  #subject: Subject | undefined;
  #seen = false;
  #panel: TryPanel | undefined;
  readonly #view = byId('view-try', HTMLElement);
  readonly #fault = byId('try-fault', HTMLElement);

  constructor(private readonly host: TryHost) {
    const near = new IntersectionObserver(
      (entries) => {
        if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
        near.disconnect();
        this.#seen = true;
        void this.#show();
      },
      { rootMargin: '50%' },
    );
    near.observe(this.#view);
  }

  /** Sets the run whose model is tried; undefined when it is closed. */
  use(subject: Subject | undefined): void {
    this.#subject = subject;
    byId('try-empty', HTMLElement).hidden = subject !== undefined;
    void this.#show();
  }

  async #show(): Promise<void> {
    if (!this.#seen || (!this.#subject && !this.#panel)) return;
    try {
      const { TryPanel } = await import('./panels/try.js');
      this.#panel ??= new TryPanel(this.host);
      this.#panel.use(this.#subject);
      this.#fault.hidden = true;
    } catch (thrown) {
      const more = codeOf(thrown) === '' ? 'Reload the page to load this step.' : '';
      this.#fault.textContent = faultOf(thrown, more);
      this.#fault.hidden = false;
    }
  }
}
