/** The speed of this GPU, measured on request: its peak, and each kernel as a share of it. */
import { measureGpu } from 'tabtune';
import type { GpuReport } from 'tabtune';

import { byId, make } from '../dom.js';
import { figure, percent } from '../format.js';
import { progressOf } from '../words.js';
import { workerUrl } from '../worker.js';

/** Runs `work` while no run uses the GPU. */
export type Alone = (work: () => Promise<void>) => Promise<void>;

export class GpuPanel {
  readonly #button = byId('measure-gpu', HTMLButtonElement);
  readonly #copy = byId('gpu-copy', HTMLButtonElement);
  readonly #facts = byId('gpu-facts', HTMLElement);
  readonly #said = byId('gpu-said', HTMLElement);
  readonly #rows = byId('gpu-rows', HTMLElement);
  #report: GpuReport | undefined;

  constructor(
    private readonly alone: Alone,
    private readonly onError: (thrown: unknown) => void,
  ) {
    this.#button.addEventListener('click', () => void this.#measure());
    this.#copy.addEventListener('click', () => void this.#copyJson());
  }

  enable(): void {
    this.#button.disabled = false;
  }

  async #measure(): Promise<void> {
    this.#button.disabled = true;
    try {
      await this.alone(async () =>
        this.#show(
          await measureGpu({
            workerUrl,
            onProgress: (progress) => (this.#said.textContent = progressOf(progress)),
          }),
        ),
      );
      this.#said.textContent = 'Measured.';
    } catch (thrown) {
      this.#said.textContent = '';
      this.onError(thrown);
    } finally {
      this.#button.disabled = false;
    }
  }

  async #copyJson(): Promise<void> {
    try {
      await navigator.clipboard.writeText(JSON.stringify(this.#report, undefined, 2));
      this.#said.textContent = 'Copied.';
    } catch (thrown) {
      this.onError(thrown);
    }
  }

  #show(report: GpuReport): void {
    this.#report = report;
    this.#copy.hidden = false;
    const {
      adapter,
      software,
      timing,
      peakGflopPerSec: peak,
      copyGbPerSec: copy,
      kernels,
    } = report;
    const by = timing === 'device' ? 'the GPU’s timestamps' : 'the clock around many launches';
    const parts = kernels.some(({ whole }) => !whole)
      ? ' Shapes in brackets are parts of those that a faster GPU gets.'
      : '';
    const kind = software ? ' It is a processor that runs shaders, with kernels of its own.' : '';
    this.#facts.textContent = `${adapter}: at most ${figure(peak)} GFLOP/s in f32 and ${figure(copy)} GB/s, by ${by}.${kind}${parts}`;
    this.#rows.replaceChildren(
      ...kernels.map(({ name, shape, whole, ms, gflopPerSec, gbPerSec, fraction, of }) => {
        const row = make('tr');
        const head = make('th', name);
        head.scope = 'row';
        head.append(make('small', whole ? shape : `(${shape})`));
        const speed =
          gflopPerSec === undefined ? `${figure(gbPerSec)} GB/s` : `${figure(gflopPerSec)} GFLOP/s`;
        const part = `${percent(fraction)} of ${of}`;
        row.append(head, ...[figure(ms), speed, part].map((text) => make('td', text)));
        return row;
      }),
    );
  }
}
