/** The run that is open in this page: its trainer, and its display. */
import type { Trainer, TrainerEvent, TrainerState } from 'tabtune';

import { byId } from './dom.js';
import { grouped } from './format.js';
import type { CheckpointPanel } from './panels/checkpoints.js';
import type { Controls } from './panels/controls.js';
import type { Figures } from './panels/figures.js';
import type { KernelPanel } from './panels/kernels.js';
import type { Samples } from './panels/samples.js';
import type { Warnings } from './panels/warnings.js';
import type { View } from './view.js';
import { Waiting } from './waiting.js';
import type { Intervals } from './waiting.js';
import { keepAwake } from './wake.js';
import { faultOf, isFinal } from './words.js';

export interface Shown {
  controls: Controls;
  figures: Figures;
  kernels: KernelPanel;
  samples: Samples;
  checkpoints: CheckpointPanel;
  view: View;
  warnings: Warnings;
}

const MEMORY_EVERY_MILLIS = 5000;
/** Title of the tab while nothing runs. */
const TITLE = document.title;
const TYPES = ['step', 'eval', 'sample', 'checkpoint', 'warning', 'state'] as const;
const RESTING = {
  paused: (step: string) => `Paused after step ${step}.`,
  stopped: (step: string) => `Stopped after step ${step}.`,
  done: (step: string) => `Done: ${step} steps. Let it write, export it, or start another.`,
};

export class LiveRun {
  /** Number of steps of the whole run. */
  total = 0;
  /** Time of the last question for the GPU's memory. */
  #asked = -Infinity;
  #saved: number;
  #lost = false;
  readonly #leaving = new AbortController();
  readonly #waiting: Waiting;

  constructor(
    readonly trainer: Trainer,
    private readonly shown: Shown,
  ) {
    this.#saved = trainer.completedSteps;
    this.#waiting = new Waiting((work, elapsed) => shown.controls.showWork(work, elapsed));
    // An idle trainer also has events, for example a lost GPU.
    for (const type of TYPES)
      trainer.addEventListener(type, ({ detail }) => this.#show(detail), {
        signal: this.#leaving.signal,
      });
  }

  /** True if its worker or GPU is lost for good; the saved checkpoints are not. */
  get lost(): boolean {
    return this.#lost;
  }

  set intervals(intervals: Intervals) {
    this.#waiting.intervals = intervals;
  }

  get going(): boolean {
    return !this.#lost && ['running', 'recovering'].includes(this.shown.controls.state);
  }

  /** Number of steps that would be lost with the trainer. */
  get unsaved(): number {
    return this.#lost ? 0 : Math.max(0, this.trainer.completedSteps - this.#saved);
  }

  /** Trains until the run is done, stopped, left, or fails; the listeners receive the events. */
  async drive(): Promise<void> {
    const { controls, figures, view } = this.shown;
    const awake = keepAwake();
    controls.show(
      'running',
      controls.state === 'starting'
        ? undefined
        : `Continuing after step ${grouped(this.trainer.completedSteps)}.`,
    );
    try {
      for await (const _ of this.trainer.run());
    } catch (thrown) {
      if (!this.#leaving.signal.aborted) this.#fail(thrown);
    } finally {
      awake();
      this.#waiting.end();
      figures.finish();
      view.summarise();
      document.title = TITLE;
    }
    if (!this.#leaving.signal.aborted && controls.state === 'running')
      controls.show('paused', 'Paused.');
  }

  #show(event: TrainerEvent): void {
    const { controls, view, checkpoints, warnings } = this.shown;
    this.#waiting.follow(event);
    switch (event.type) {
      case 'step':
        byId('main', HTMLElement).dataset['step'] = String(event.step);
        document.title = `${grouped(event.step)} of ${grouped(this.total)}, loss ${event.loss.toFixed(2)} · tabtune`;
        view.add(event);
        this.#askMemory();
        return;
      case 'eval':
      case 'sample':
        view.add(event);
        return;
      case 'checkpoint':
        this.#saved = event.step;
        if (event.step > 0) controls.say(`Checkpoint of step ${grouped(event.step)} saved.`);
        void checkpoints.refresh();
        return;
      case 'warning':
        warnings.add(event);
        return;
      case 'state':
        this.#state(event.state, event.step);
        return;
      default:
        event satisfies never;
    }
  }

  /** Asks for the bytes that the GPU has reserved, now and then, because no event has them. */
  #askMemory(): void {
    if (performance.now() - this.#asked < MEMORY_EVERY_MILLIS) return;
    this.#asked = performance.now();
    this.trainer.info().then(
      ({ gpuBytes, completedSteps }) => {
        if (gpuBytes !== undefined && completedSteps > 0)
          this.shown.view.memory(completedSteps, gpuBytes);
      },
      // A lost GPU is reported by the run itself.
      () => undefined,
    );
  }

  #state(state: TrainerState, step: number): void {
    const { controls, figures, kernels, view } = this.shown;
    figures.interrupt();
    kernels.use(state === 'running' || state === 'paused' ? this.trainer : undefined);
    if (state === 'running') {
      const again = controls.state === 'paused' || controls.state === 'recovering';
      controls.show('running');
      if (again) controls.say(`Continuing after step ${grouped(step)}.`);
    } else if (state === 'recovering') {
      view.cut(step);
      controls.show(
        'recovering',
        `The GPU or the worker was lost. Continuing after step ${grouped(step)} …`,
      );
    } else if (state === 'paused' || state === 'stopped' || state === 'done')
      controls.show(state, RESTING[state](grouped(step)));
  }

  /** Shows that the run stopped at an error, and offers what can still be done. */
  #fail(thrown: unknown): void {
    const { controls, kernels, samples } = this.shown;
    kernels.use(undefined);
    this.#lost = isFinal(thrown);
    if (!this.#lost) {
      controls.show(
        'failed',
        faultOf(
          thrown,
          `The run is after step ${grouped(this.trainer.completedSteps)}: it can be saved, exported and resumed.`,
        ),
      );
      return;
    }
    samples.use(undefined);
    const step = grouped(this.#saved);
    controls.offer(this.#saved > 0 ? `Resume after step ${step}` : undefined);
    controls.show(
      'lost',
      faultOf(
        thrown,
        this.#saved > 0
          ? `The checkpoint of step ${step} is on this device.`
          : 'Nothing was saved yet.',
      ),
    );
  }

  /** Ends the run; unsaved steps are lost. */
  async close(): Promise<void> {
    this.#leaving.abort();
    this.#waiting.end();
    this.shown.kernels.use(undefined);
    this.shown.samples.use(undefined);
    await this.trainer.dispose();
  }
}
