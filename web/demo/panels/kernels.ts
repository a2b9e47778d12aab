/** GPU time of each kernel in a step, measured on request. */
import type { Profile, Trainer } from 'tabtune';

import { byId, make } from '../dom.js';
import { grouped } from '../format.js';

const STEPS = 3;

export class KernelPanel {
  readonly #button = byId('measure', HTMLButtonElement);
  readonly #facts = byId('kernels-facts', HTMLElement);
  readonly #rows = byId('kernels', HTMLElement);
  readonly #plan = this.#facts.textContent;
  #trainer: Trainer | undefined;
  #measuring = false;

  constructor(private readonly onError: (thrown: unknown) => void) {
    this.#button.addEventListener('click', () => void this.#measure());
  }

  /** Sets the trainer whose steps can be measured, which is running or paused. */
  use(trainer: Trainer | undefined): void {
    this.#trainer = trainer;
    this.#button.disabled = this.#measuring || trainer === undefined;
  }

  clear(): void {
    this.#rows.replaceChildren();
    this.#facts.textContent = this.#plan;
  }

  async #measure(): Promise<void> {
    const trainer = this.#trainer;
    if (!trainer || this.#measuring) return;
    this.#measuring = true;
    this.#button.disabled = true;
    const going = trainer.state === 'running';
    try {
      if (going) await trainer.pause();
      this.#show(await trainer.profile(STEPS));
    } catch (thrown) {
      this.onError(thrown);
    } finally {
      if (going) await trainer.resume();
      this.#measuring = false;
      this.use(this.#trainer);
    }
  }

  #show({ steps, timing, ms, unmeasured, kernels }: Profile): void {
    const launches = kernels.reduce((sum, row) => sum + row.launches, 0);
    const by = timing === 'device' ? 'the GPU’s timestamps' : 'the clock around each kernel';
    const short =
      unmeasured > 0
        ? ` ${grouped(unmeasured)} of all launches were shorter than a tick of the GPU’s clock.`
        : '';
    this.#facts.textContent = `${grouped(launches)} launches and ${ms.toFixed(1)} ms per step, mean of ${steps}, by ${by}.${short}`;
    this.#rows.replaceChildren(
      ...kernels.map(({ kernel, launches: each, ms: time, share }) => {
        const row = make('tr');
        const name = make('th');
        name.scope = 'row';
        // On a narrow screen a name breaks after its words.
        for (const word of kernel.split(/(?<=_)/)) name.append(word, make('wbr'));
        row.append(
          name,
          ...[grouped(each), time.toFixed(2), `${(100 * share).toFixed(1)} %`].map((text) =>
            make('td', text),
          ),
        );
        return row;
      }),
    );
  }
}
