/** The worker's half of the loop: the steps, the work between them, and the end. */
import { aborted, fault, finding, TabtuneError, withDetail } from '../protocol/errors.js';
import { macrotask } from './pacing.js';
import type { Profile } from '../protocol/reports.js';
import type { Advance, TrainingSession } from './session.js';

const OF_THE_DEVICE =
  /^(ABORTED|DEVICE_LOST|GPU_UNAVAILABLE|OUT_OF_MEMORY|SHADER_FAILED|WORKER_CRASHED)$/;
/** Maximum number of consecutive refused steps; more are not a transient problem. */
const MAX_SKIPS = 10;

type LoopEnd = { state: 'paused' | 'stopped' | 'done'; step: number };
interface LoopCall {
  maxSteps?: number | undefined;
  /** True if lost steps are repeated, whose states were already reported. */
  again?: boolean | undefined;
}

export class StepLoop {
  #looping: Promise<unknown> | undefined;
  #asked: 'paused' | 'stopped' | undefined;
  #saveSoon = false;
  #skips = 0;
  /** Lowest evaluation loss in this worker. */
  #lowest = Infinity;
  /** True after the warning that the loss rises. */
  #rises = false;

  constructor(private readonly trainer: TrainingSession) {}

  /** Makes steps until paused, stopped, done, or `maxSteps` steps are made. */
  async run(call: LoopCall, signal: AbortSignal): Promise<LoopEnd> {
    this.trainer.refuseBusy();
    this.trainer.looping = true;
    this.#asked = undefined;
    const loop = this.#loop(call, signal);
    this.#looping = loop.catch(() => undefined);
    try {
      return await loop;
    } catch (thrown) {
      throw thrown instanceof TabtuneError && thrown === this.trainer.parts.watch.fault
        ? withDetail(thrown, { step: this.trainer.confirmed })
        : thrown;
    } finally {
      this.#looping = undefined;
      this.trainer.looping = false;
      this.trainer.parts.outbox.flush();
    }
  }

  async #loop({ maxSteps, again = false }: LoopCall, signal: AbortSignal): Promise<LoopEnd> {
    const { completedSteps, totalSteps, scheduleStart } = await this.trainer.inspect();
    this.trainer.scheduleStart = scheduleStart;
    let step = completedSteps;
    const last = maxSteps === undefined ? totalSteps : Math.min(totalSteps, step + maxSteps);
    if (!again) this.trainer.announce('running', step);
    try {
      // Saved before the first step, because without a checkpoint a loss of the worker would cost everything.
      if (this.trainer.saver.generation === undefined && step < last)
        await this.#autosave(step, signal);
      for (;;) {
        if (step >= last || this.#asked !== undefined || signal.aborted) {
          const settled = await this.#settle();
          const refused = settled < step;
          step = settled;
          if (!refused || this.#asked !== undefined || signal.aborted) break;
        }
        const next = await this.#step(signal);
        step = next > step ? await this.#between(next, next >= last, signal) : next;
        // One macrotask per step lets pause, stop and abort be handled.
        await macrotask();
      }
      await this.trainer.confirm(step);
    } catch (thrown) {
      if (!signal.aborted || this.trainer.parts.watch.fault) throw thrown;
    }
    if (signal.aborted) {
      this.trainer.announce('paused', step);
      throw aborted('the run');
    }
    const state = this.#asked ?? (step >= totalSteps ? 'done' : 'paused');
    if (state !== 'paused') await this.trainer.finalSave(step);
    if (!again) this.trainer.announce(state, step);
    return { state, step };
  }

  /** Makes one step. If it is refused and its batches are skipped, the run returns to its state before that step. */
  async #step(signal: AbortSignal): Promise<number> {
    try {
      return this.#counted(await this.trainer.step(signal));
    } catch (thrown) {
      const skippable =
        thrown instanceof TabtuneError &&
        thrown.code === 'NON_FINITE' &&
        this.trainer.parts.driver.onNonFinite === 'skip';
      if (!skippable || ++this.#skips > MAX_SKIPS) throw thrown;
      await this.trainer.skipBatch();
      const { completedSteps } = await this.trainer.inspect();
      this.trainer.warn(completedSteps, thrown);
      return completedSteps;
    }
  }

  async #settle(): Promise<number> {
    return this.#counted(await this.trainer.settle());
  }

  /** Resets the count of consecutive refused steps if a step was taken. */
  #counted({ step, reported }: Advance): number {
    if (reported > 0) this.#skips = 0;
    return step;
  }

  /**
   * Does the work due after a new step: save, evaluation, sample, in this order, so that a failure costs no step. It first waits for all reports, one
   * of which may refuse a step.
   */
  async #between(step: number, ends: boolean, signal: AbortSignal): Promise<number> {
    const { evalEvery = 0, sampleEvery } = this.trainer.parts.driver;
    const due = (every: number): boolean => every > 0 && step % every === 0;
    const { clock } = this.trainer.saver;
    const hidden = this.#saveSoon && clock.dueHidden(step);
    this.#saveSoon = false;
    const starts = step === this.trainer.scheduleStart && clock.needed(step);
    const looks = due(evalEvery) || due(sampleEvery);
    const saves = clock.due(step) || hidden || starts || (ends && looks && clock.needed(step));
    if (!looks && !saves) return step;
    const settled = await this.#settle();
    if (settled < step) return settled;
    if (saves) await this.#autosave(step, signal);
    if (due(evalEvery))
      await this.#orWarn('run.evaluation', step, signal, () => this.#evaluate(step, signal));
    if (due(sampleEvery))
      await this.#orWarn('run.sample', step, signal, () => this.#sample(step, signal));
    return step;
  }

  /** Does work that the run does not depend on: its failure becomes a warning, unless it is one of the GPU or the worker. */
  async #orWarn(
    code: 'run.evaluation' | 'run.sample',
    step: number,
    signal: AbortSignal,
    work: () => Promise<void>,
  ): Promise<void> {
    try {
      await work();
    } catch (thrown) {
      const isHarmless =
        thrown instanceof TabtuneError &&
        !OF_THE_DEVICE.test(thrown.code) &&
        !signal.aborted &&
        !this.trainer.parts.watch.fault;
      if (!isHarmless) throw thrown;
      this.trainer.emit({ type: 'warning', step, ...finding(code, { found: thrown.message }) });
    }
  }

  /** Evaluates; the best state so far is saved, so that it can be kept. */
  async #evaluate(step: number, signal: AbortSignal): Promise<void> {
    const report = await this.trainer.evaluate(
      this.trainer.parts.driver.evalBatches || undefined,
      signal,
    );
    const best = await this.trainer.saver.isBest(report.loss);
    this.trainer.emit({ type: 'eval', step, ...report });
    if (best) await this.#autosave(step, signal);
    this.#warnIfRisen(step, report.loss);
  }

  /** Warns once if the evaluation loss is above its lowest value. */
  #warnIfRisen(step: number, loss: number): void {
    const lowest = this.#lowest;
    this.#lowest = Math.min(lowest, loss);
    if (loss <= lowest || this.#rises) return;
    this.#rises = true;
    const [expected, found] = [lowest.toFixed(4), loss.toFixed(4)];
    const rise = finding('run.overfitting', { expected, found });
    this.trainer.emit({ type: 'warning', step, ...rise });
  }

  async #sample(step: number, signal: AbortSignal): Promise<void> {
    const { samplePrompt, sample } = this.trainer.parts.driver;
    let text = '';
    const end = await this.trainer.sample(
      samplePrompt,
      sample,
      signal,
      (token) => (text += token.text),
    );
    this.trainer.emit({ type: 'sample', step, prompt: samplePrompt, text, end });
  }

  async #autosave(step: number, signal?: AbortSignal): Promise<void> {
    await this.trainer.autosave(step, signal);
    void this.trainer.saver.mirror(false);
  }

  /** Saves because the page is hidden or the run paused: after the current step, or immediately if no loop is running. */
  async saveUnsaved(always: boolean): Promise<void> {
    if (this.#looping) {
      this.#saveSoon = true;
      return;
    }
    const { completedSteps } = await this.trainer.inspect();
    if (always || this.trainer.saver.clock.dueHidden(completedSteps))
      await this.#autosave(completedSteps);
  }

  /** Ends the loop after the current step and resolves when it has ended. */
  async halt(state: 'paused' | 'stopped'): Promise<void> {
    if (this.#looping) {
      // A stop is not undone by a pause.
      if (this.#asked !== 'stopped') this.#asked = state;
      await this.#looping;
    } else if (state === 'stopped') {
      const { completedSteps } = await this.trainer.inspect();
      await this.trainer.finalSave(completedSteps);
      this.trainer.announce('stopped', completedSteps);
      this.trainer.parts.outbox.flush();
    }
  }

  /** Returns the time of each kernel in the next `steps` steps. */
  async profile(steps: number, signal: AbortSignal): Promise<Profile> {
    if (this.trainer.parts.watch.hides('timestamp-query')) {
      throw fault(
        'device.feature',
        { subject: 'timestamp-query', found: 'time kernels' },
        { feature: 'timestamp-query' },
      );
    }
    await this.trainer.startProfile();
    let profile: Profile;
    try {
      await this.run({ maxSteps: steps }, signal);
    } finally {
      profile = await this.trainer.finishProfile();
    }
    return profile;
  }
}
