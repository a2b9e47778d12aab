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
import type { Trying } from './trying.js';
import { keepNoted, noteStep } from './speeds.js';
import type { View } from './view.js';
import { TimeLeft } from './time-left.js';
import { Waiting } from './waiting.js';
import type { Intervals, Work } from './waiting.js';
import { keepAwake } from './wake.js';
import { faultOf, isAbort, isFinal } from './words.js';

export interface Shown {
  controls: Controls;
  figures: Figures;
  kernels: KernelPanel;
  samples: Samples;
  checkpoints: CheckpointPanel;
  trying: Trying;
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
  #total = 0;
  #left = new TimeLeft(0, { evalEvery: 0, sampleEvery: 0, saveEvery: 0 });
  /** Ends the steps in order to leave out a sample. */
  #part = new AbortController();
  #stopping = false;
  /** Time of the last question for the GPU's memory. */
  #asked = -Infinity;
  /** Identifies the settings whose speed is measured; empty for those of a resumed run. */
  speedKey = '';
  #saved: number;
  #lost = false;
  readonly #leaving = new AbortController();
  readonly #waiting: Waiting;

  constructor(
    readonly trainer: Trainer,
    /** Name of the run. */
    readonly label: string,
    private readonly shown: Shown,
  ) {
    this.#saved = trainer.completedSteps;
    this.#waiting = new Waiting((words, elapsed, work) => this.#showWork(words, elapsed, work));
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

  /** Sets what the run consists of, and whether it has a checkpoint. */
  plan(total: number, intervals: Intervals, saved: boolean): void {
    this.#total = total;
    this.#left = new TimeLeft(total, intervals);
    Object.assign(this.#waiting, { total, intervals, saved });
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
    this.#stopping = false;
    try {
      while (!(await this.#steps()));
    } catch (thrown) {
      if (!this.#leaving.signal.aborted) this.#fail(thrown);
    } finally {
      awake();
      this.#waiting.end();
      keepNoted();
      figures.finish();
      view.summarise();
      document.title = TITLE;
    }
    if (!this.#leaving.signal.aborted && controls.state === 'running')
      controls.show('paused', 'Paused.');
  }

  /** Makes steps until the run rests, or, without a result, until a sample was left out. */
  async #steps(): Promise<boolean> {
    this.#part = new AbortController();
    const { signal } = this.#part;
    try {
      for await (const _ of this.trainer.run({ signal }));
      return true;
    } catch (thrown) {
      if (!signal.aborted || this.#leaving.signal.aborted || this.#lost || !isAbort(thrown))
        throw thrown;
    }
    if (this.#stopping) await this.trainer.stop();
    return this.#stopping;
  }

  /** Leaves out the sample that is being written. */
  skip(): void {
    if (this.#waiting.work === 'sample') this.#part.abort();
  }

  /** Stops after the current step, without the sample that is being written. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#waiting.stop();
    if (this.#waiting.work === 'sample') this.#part.abort();
    else await this.trainer.stop();
  }

  #showWork(words: string, elapsed: string, work: Work | undefined): void {
    this.shown.controls.showWork(words, elapsed, work);
    if (words === '') return;
    this.shown.figures.left(this.#left.left());
    // The last step is not the end.
    if (this.trainer.completedSteps >= this.#total) document.title = `${words} · tabtune`;
  }

  #show(event: TrainerEvent): void {
    const { controls, figures, view, checkpoints, warnings } = this.shown;
    this.#left.follow(event);
    // While a sample is left out, the run rests for a moment only.
    if (event.type === 'state' && event.state === 'paused' && this.#part.signal.aborted) return;
    this.#waiting.follow(event);
    if (this.going) figures.left(this.#left.left());
    switch (event.type) {
      case 'step':
        if (this.speedKey !== '') noteStep(this.speedKey, event.step, event.secs);
        byId('main', HTMLElement).dataset['step'] = String(event.step);
        document.title = `${grouped(event.step)} of ${grouped(this.#total)}, loss ${event.loss.toFixed(2)} · tabtune`;
        view.add(event);
        controls.stepped(event.step);
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
    this.shown.trying.use(undefined);
    await this.trainer.dispose();
  }
}
