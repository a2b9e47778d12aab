/** From the start button to the exported model: one run at a time, and none is discarded without asking. */
import { TabtuneError, Trainer } from 'tabtune';
import type { CheckpointInfo, Progress } from 'tabtune';

import { askToEnd } from './ask.js';
import { showBase, withBase } from './base-model.js';
import type { Charts } from './charts.js';
import { byId } from './dom.js';
import { grouped } from './format.js';
import { LiveRun } from './live.js';
import type { Shown } from './live.js';
import { stemOf } from './names.js';
import { openNext } from './next-run.js';
import type { Opened } from './next-run.js';
import type { ExportPanel } from './panels/export-as.js';
import type { Setup } from './panels/setup.js';
import { tellResumed } from './panels/story.js';
import { decay, moreSteps, showSchedule } from './schedule.js';
import type { Changes } from './schedule.js';
import { dataFor } from './missing-data.js';
import type { Taken } from './panels/places.js';
import { intervalsOf } from './waiting.js';
import { faultOf, notStarted, progressOf } from './words.js';
import { workerUrl } from './worker.js';

export interface Panels extends Shown {
  charts: Charts;
  exporting: ExportPanel;
  setup: Setup;
}

type Open = (signal: AbortSignal) => Promise<Opened>;

export class Run {
  #live: LiveRun | undefined;
  #offered: CheckpointInfo | undefined;
  #starting: { controller: AbortController; over: Promise<unknown> } | undefined;

  constructor(private readonly panels: Panels) {
    addEventListener('beforeunload', (event) => {
      // The browser then asks in its own words.
      if ((this.#live?.unsaved ?? 0) > 0) event.preventDefault();
    });
  }

  /** The trainer of the open run. */
  get trainer(): Trainer | undefined {
    return this.#live?.trainer;
  }

  /** Returns the trainer of the run with this id, if it is open in this page and not lost. */
  trainerOf(run: string): Trainer | undefined {
    return this.#live?.trainer.runId === run && !this.#live.lost ? this.#live.trainer : undefined;
  }

  start(): Promise<void> {
    const { controls, setup } = this.panels;
    const onProgress = this.#onProgress;
    return this.#begin('Starting a run …', (signal) =>
      openNext(setup, (words) => controls.say(words), { signal, onProgress }),
    );
  }

  /** Measures two steps of the next run, which are thrown away. */
  async measure(): Promise<void> {
    const { controls, setup } = this.panels;
    const controller = new AbortController();
    const measured = import('./measure.js').then(({ measureNext }) =>
      measureNext(setup, controller.signal, this.#onProgress),
    );
    const starting = { controller, over: measured.catch(() => undefined) };
    this.#starting = starting;
    controls.show('starting', 'Measuring two steps …');
    const said = await measured.then(
      () => 'Measured.',
      (thrown: unknown) => {
        setup.fit.failed(thrown);
        return controller.signal.aborted ? 'The measurement was cancelled.' : faultOf(thrown);
      },
    );
    if (this.#starting !== starting) return;
    this.#starting = undefined;
    setup.comeBack();
    controls.show('setup', said);
  }

  /** Resumes a saved run, from `generation` or else from its newest complete one. */
  async resume(info: CheckpointInfo, generation?: number, changes: Changes = {}): Promise<void> {
    const { run, label } = info;
    const data = info.hasData ? undefined : await dataFor(info, this.panels.setup);
    if (!info.hasData && data === undefined) return;
    return this.#begin('Opening the checkpoint …', async (signal) => {
      // Two models need not be open at once.
      this.panels.setup.leave();
      tellResumed(label);
      const open = (base: { base?: File[] }): Promise<Trainer> =>
        Trainer.resume({
          workerUrl,
          run,
          generation,
          data,
          ...base,
          ...changes,
          signal,
          onProgress: this.#onProgress,
        });
      return { trainer: await withBase(open), label };
    });
  }

  /** Offers to continue a saved run. */
  offer(info: CheckpointInfo): void {
    this.#offered = info;
    this.panels.controls.offer(
      `${info.step < info.totalSteps ? 'Resume' : 'Open again:'} ${info.label}`,
    );
  }

  /** Continues the open run, or else the newest checkpoint of the one that was lost or offered. */
  async goOn(): Promise<void> {
    if (this.#live && !this.#live.lost) return this.#live.drive();
    const newest = await this.panels.checkpoints.newest(
      this.#live?.trainer.runId ?? this.#offered?.run,
    );
    if (newest) await this.resume(newest);
    else this.panels.controls.say('There is no checkpoint to resume from.');
  }

  async #begin(words: string, open: Open): Promise<void> {
    if (!(await this.#mayLeave())) return;
    this.#starting?.controller.abort();
    await this.#starting?.over;
    const controller = new AbortController();
    const opened = this.#open(words, open, controller.signal).catch(async (thrown: unknown) => {
      await this.#close();
      // The form is still there, for another try.
      this.panels.setup.fit.failed(thrown);
      const cancelled = controller.signal.aborted;
      if (!cancelled && thrown instanceof TabtuneError) this.panels.setup.failed(thrown);
      this.panels.setup.comeBack();
      const said = cancelled ? 'The start was cancelled.' : notStarted(thrown);
      this.panels.controls.show('setup', said);
      if (!cancelled) this.panels.setup.fit.ask();
      return undefined;
    });
    const starting = { controller, over: opened };
    this.#starting = starting;
    const live = await opened;
    if (this.#starting === starting) this.#starting = undefined;
    await live?.drive();
  }

  async #open(words: string, open: Open, signal: AbortSignal): Promise<LiveRun> {
    const { controls, kernels, samples, trying, view, warnings } = this.panels;
    await this.#close();
    controls.show('starting', words);
    warnings.clear();
    const { trainer, label, intervals, speedKey = '', again } = await open(signal);
    const live = new LiveRun(trainer, label, this.panels);
    live.speedKey = speedKey;
    this.#live = live;
    const info = await trainer.info();
    const { totalSteps, completedSteps, device, model, config } = info;
    showBase(info);
    await showSchedule(trainer, info, this.panels);
    const history = await trainer.history();
    live.plan(totalSteps, intervals ?? intervalsOf(history), info.generation !== undefined);
    const about = { run: trainer.runId, label, adapter: device, settings: config };
    view.restore(history, totalSteps, about);
    byId('main', HTMLElement).dataset['step'] = String(completedSteps);
    kernels.clear();
    samples.use(trainer);
    trying.use({ trainer, info, again });
    controls.offer('Resume');
    controls.say(`Training on ${device}: ${grouped(model.parameters)} parameters.`);
    // The list shows which run is open here.
    void this.panels.checkpoints.refresh();
    return live;
  }

  /** An arrow function, because it is passed as a callback. */
  readonly #onProgress = (progress: Progress): void => {
    if (this.panels.controls.state !== 'starting') return;
    this.panels.controls.say(progressOf(progress));
    this.panels.setup.showProgress(progress);
  };

  async togglePause(): Promise<void> {
    if (this.panels.controls.state === 'running') {
      this.panels.controls.say('Pausing after this step …');
      await this.#live?.trainer.pause();
    } else await this.#live?.trainer.resume();
  }

  /** Pauses the current run while `work` runs. */
  async alone(work: () => Promise<void>): Promise<void> {
    const trainer = this.#live?.trainer;
    const going = trainer?.state === 'running';
    if (going) await trainer.pause();
    try {
      await work();
    } finally {
      if (going) await trainer.resume();
    }
  }

  async oneStep(): Promise<void> {
    await this.#live?.trainer.step();
  }

  async stop(): Promise<void> {
    this.#starting?.controller.abort();
    await this.#live?.stop();
  }

  /** Lets the learning rate decay from now on. */
  async decay(): Promise<void> {
    const trainer = this.#live?.trainer;
    if (trainer) await decay(trainer, this.panels, (changes) => this.#reopen(trainer, changes));
  }

  /** Continues a run that is done with more steps. */
  async longer(): Promise<void> {
    const trainer = this.#live?.trainer;
    if (trainer) await this.#reopen(trainer, moreSteps(trainer));
  }

  /** Opens a run again as it is now, with changes. */
  async #reopen(trainer: Trainer, changes: Changes): Promise<void> {
    await this.resume(await trainer.save(), undefined, changes);
  }

  /** Leaves out the sample that is being written; the run continues. */
  async skip(): Promise<void> {
    this.#live?.skip();
  }

  async save(): Promise<void> {
    const { controls, checkpoints } = this.panels;
    // Within the click, because browsers accept the request only then.
    checkpoints.persist().catch((thrown: unknown) => controls.say(faultOf(thrown)));
    controls.say('Saving …');
    const { step } = (await this.#live?.trainer.save()) ?? {};
    if (step !== undefined) controls.say(`Checkpoint of step ${grouped(step)} saved.`);
  }

  async export(): Promise<void> {
    if (this.#live) await this.panels.exporting.open(this.#live.trainer, stemOf(this.#live.label));
  }

  /** The run of which things can be taken away. */
  get taken(): Taken | undefined {
    const live = this.#live;
    return live && { trainer: live.trainer, label: live.label, lost: live.lost };
  }

  /** Downloads the run as it is, as a checkpoint; returns the name of the file. */
  async take(): Promise<string> {
    const live = this.#live;
    if (!live) return '';
    if (live.unsaved > 0) await live.trainer.save();
    return this.panels.checkpoints.download(live.trainer.runId);
  }

  async again(): Promise<void> {
    if (!(await this.#mayLeave())) return;
    await this.#close();
    const { controls, view, setup, warnings } = this.panels;
    view.clear(0);
    warnings.clear();
    setup.comeBack();
    byId('run-base', HTMLElement).hidden = true;
    controls.offer(undefined);
    controls.show('setup', 'Ready.');
  }

  /** Asks before a running run, or steps that are in no checkpoint, are discarded. */
  async #mayLeave(): Promise<boolean> {
    const live = this.#live;
    if (!live || (!live.going && live.unsaved === 0)) return true;
    const answer = await askToEnd(live.going, live.unsaved);
    if (answer === 'save') {
      if (live.going) await live.trainer.pause();
      await live.trainer.save();
    }
    return answer !== undefined;
  }

  async #close(): Promise<void> {
    const live = this.#live;
    this.#live = undefined;
    if (!live) return;
    await live.close();
    void this.panels.checkpoints.refresh();
  }
}
