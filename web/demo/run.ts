/** One training run on the page: from the button to the exported model. */
import { TabtuneError, Trainer } from 'tabtune';
import type { CheckpointInfo, Progress, TrainerEvent } from 'tabtune';

import type { Charts } from './charts.js';
import { byId, download } from './dom.js';
import { grouped } from './format.js';
import type { CheckpointPanel } from './panels/checkpoints.js';
import type { Controls } from './panels/controls.js';
import type { Figures } from './panels/figures.js';
import type { KernelPanel } from './panels/kernels.js';
import type { Samples } from './panels/samples.js';
import type { Setup } from './panels/setup.js';
import { driveOptions, trainOptions } from './settings.js';
import { keepAwake } from './wake.js';

export interface Panels {
  charts: Charts;
  controls: Controls;
  figures: Figures;
  kernels: KernelPanel;
  samples: Samples;
  setup: Setup;
  checkpoints: CheckpointPanel;
}

const PHASES: Record<Progress['phase'], string> = {
  download: 'Downloading',
  read: 'Reading the model',
  verify: 'Checking the checkpoint',
  upload: 'Moving the weights to the GPU',
  compile: 'Preparing the GPU',
  save: 'Saving',
  export: 'Exporting',
  import: 'Importing',
  ready: 'Ready',
};

export class Run {
  #trainer: Trainer | undefined;
  #starting: AbortController | undefined;

  constructor(private readonly panels: Panels) {}

  start(): Promise<void> {
    const { setup } = this.panels;
    const { onProgress } = this;
    return this.#begin('Starting a run …', async (signal) => {
      const options = { ...trainOptions(), ...driveOptions(), data: setup.data, label: setup.label };
      return setup.handOver((model) => Trainer.create({ model, ...options, signal, onProgress }));
    });
  }

  resume({ run, generation }: CheckpointInfo): Promise<void> {
    const { onProgress } = this;
    return this.#begin('Opening the checkpoint …', (signal) => Trainer.resume({ run, generation, signal, onProgress }));
  }

  async #begin(words: string, open: (signal: AbortSignal) => Promise<Trainer>): Promise<void> {
    const { controls, charts, figures, kernels, samples } = this.panels;
    await this.#close();
    const controller = new AbortController();
    this.#starting = controller;
    controls.show('starting', words);
    try {
      const trainer = await open(controller.signal);
      this.#trainer = trainer;
      const { totalSteps, adapter, model } = await trainer.inspect();
      charts.clear();
      charts.plan(await trainer.previewSchedule(totalSteps));
      figures.clear(totalSteps);
      kernels.clear();
      samples.clear();
      samples.use(trainer);
      controls.show('running', `Training on ${adapter}: ${grouped(model.parameters)} parameters.`);
      await this.#drive(trainer);
    } catch (thrown) {
      if (controller.signal.aborted) controls.show('setup', 'The start was called off.');
      else this.fail(thrown);
    } finally {
      this.#starting = undefined;
    }
  }

  async #drive(trainer: Trainer): Promise<void> {
    const { controls, figures, charts } = this.panels;
    const awake = keepAwake();
    try {
      for await (const event of trainer.run()) this.#show(event);
    } finally {
      awake();
      figures.finish();
      byId('loss-summary', HTMLElement).textContent = charts.summary();
    }
    if (controls.state === 'running') controls.show('paused', 'Paused.');
  }

  #show(event: TrainerEvent): void {
    const { controls, charts, figures, samples, checkpoints } = this.panels;
    switch (event.type) {
      case 'step':
        byId('main', HTMLElement).dataset['step'] = String(event.step);
        charts.step(event.step, event.loss, event.learningRate);
        figures.step(event);
        return;
      case 'eval':
        charts.validation(event.step, event.loss);
        figures.evaluation(event);
        return;
      case 'sample':
        samples.add(event.step, event.prompt, event.text);
        return;
      case 'checkpoint':
        controls.say(`Checkpoint of step ${grouped(event.step)} saved.`);
        void checkpoints.refresh();
        return;
      case 'warning':
        controls.say(event.message);
        return;
      case 'state':
        this.#state(event.state, event.step);
        return;
      case 'progress':
        this.onProgress(event);
        return;
      default:
        event satisfies never;
    }
  }

  #state(state: Extract<TrainerEvent, { type: 'state' }>['state'], step: number): void {
    const { controls, figures, kernels } = this.panels;
    figures.interrupt();
    kernels.use(state === 'running' || state === 'paused' ? this.#trainer : undefined);
    if (state === 'running') {
      const resumed = controls.state === 'paused';
      controls.show('running');
      if (resumed) controls.say(`Going on after step ${grouped(step)}.`);
    }
    if (state === 'recovering') controls.say('The GPU was lost. Going on from the last checkpoint …');
    else if (state === 'paused') controls.show('paused', `Paused after step ${grouped(step)}.`);
    else if (state === 'done') controls.show('done', `Done: ${grouped(step)} steps. Let it write, export it, or start another.`);
    else if (state === 'stopped') controls.show('stopped', `Stopped after step ${grouped(step)}.`);
  }

  /** Arrow: handed over as a callback. */
  readonly onProgress = ({ phase, file, fraction }: Progress): void => {
    const share = fraction > 0 && fraction < 1 ? `, ${Math.round(fraction * 100)} %` : '';
    if (this.panels.controls.state === 'starting') this.panels.controls.say(`${PHASES[phase]}${file === undefined ? '' : ` ${file}`}${share} …`);
  };

  fail(thrown: unknown): void {
    const { controls, kernels, samples } = this.panels;
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    const code = thrown instanceof TabtuneError ? ` (${thrown.code}${thrown.detail.code === undefined ? '' : `, ${thrown.detail.code}`})` : '';
    kernels.use(undefined);
    samples.use(undefined);
    controls.show('failed', `${message}${code}`);
  }

  async togglePause(): Promise<void> {
    const { controls } = this.panels;
    if (controls.state === 'running') {
      controls.say('Pausing after this step …');
      await this.#trainer?.pause();
    } else await this.#trainer?.resume();
  }

  async oneStep(): Promise<void> {
    await this.#trainer?.step();
  }

  async stop(): Promise<void> {
    this.#starting?.abort();
    await this.#trainer?.stop();
  }

  async save(): Promise<void> {
    // Asked within the click, which is the only time that browsers listen.
    void navigator.storage.persist();
    this.panels.controls.say('Saving …');
    const { step } = (await this.#trainer?.save()) ?? {};
    if (step !== undefined) this.panels.controls.say(`Checkpoint of step ${grouped(step)} saved.`);
    await this.panels.checkpoints.refresh();
  }

  async export(): Promise<void> {
    this.panels.controls.say('Writing the model …');
    const blob = await this.#trainer?.export({ format: 'safetensors' });
    if (!blob) return;
    download('tabtune-model.zip', blob);
    this.panels.controls.say('Exported: a zip of a Hugging Face folder.');
  }

  /** The page is about to be hidden or closed: whatever can be saved is. */
  async rescue(): Promise<void> {
    if (this.panels.controls.state === 'running') await this.#trainer?.save();
  }

  async again(): Promise<void> {
    await this.#close();
    const { controls, charts, figures, samples, setup } = this.panels;
    charts.clear();
    figures.clear(0);
    samples.clear();
    setup.refresh(0);
    controls.show('setup', 'Ready.');
  }

  async #close(): Promise<void> {
    this.panels.kernels.use(undefined);
    this.panels.samples.use(undefined);
    const trainer = this.#trainer;
    this.#trainer = undefined;
    await trainer?.dispose();
  }
}
