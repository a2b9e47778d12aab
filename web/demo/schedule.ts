/** The schedule of a run that has begun: its plan, an earlier decay, and more steps. */
import { TabtuneError } from 'tabtune';
import type { ResumeOptions, SessionInfo, Trainer, TrainOptions } from 'tabtune';

import type { Charts } from './charts.js';
import { strideOf } from './curve.js';
import { byId } from './dom.js';
import type { Controls } from './panels/controls.js';
import type { Warnings } from './panels/warnings.js';
import { isFinal } from './words.js';

type Schedule = TrainOptions['lrScheduler'];
/** Changes to the settings of a run that continues. */
export type Changes = Pick<ResumeOptions, 'settings' | 'override'>;
interface Shown {
  charts: Charts;
  controls: Controls;
  warnings: Warnings;
}

/** Returns whether a schedule has a decay, or an annealing, that is still to come. */
export const canDecay = (
  schedule: Schedule,
  {
    completedSteps,
    scheduleStart = Infinity,
  }: Pick<SessionInfo, 'completedSteps' | 'scheduleStart'>,
): boolean =>
  (schedule?.type === 'wsd' || schedule?.type === 'infinite') && completedSteps < scheduleStart;

/** Returns the schedule with its decay, or annealing, after this step, or as soon as what comes before it is over. */
export function decayingAfter(step: number, schedule: Schedule): Schedule {
  if (schedule?.type === 'wsd')
    return { ...schedule, decayStartStep: Math.max(step, schedule.warmupSteps ?? 0) };
  if (schedule?.type !== 'infinite') return schedule;
  const { warmupSteps = 0, cooldownSteps = 0 } = schedule;
  return { ...schedule, annealingStartStep: Math.max(step, warmupSteps + cooldownSteps) };
}

/** Draws the learning rates that are planned now. */
async function showPlan(
  trainer: Trainer,
  totalSteps: number,
  { charts, warnings }: Shown,
): Promise<void> {
  const stride = strideOf(totalSteps);
  const rates = await trainer.previewSchedule(totalSteps, { stride }).catch((thrown: unknown) => {
    if (!(thrown instanceof TabtuneError) || isFinal(thrown)) throw thrown;
    warnings.add({
      step: trainer.completedSteps,
      code: thrown.detail.code ?? thrown.code,
      message: `the planned learning rates are not shown: ${thrown.message}`,
    });
    return [];
  });
  charts.plan({ rates, stride });
}

/** Shows the plan of a run that was opened, and offers an earlier decay and, for its end, more steps. */
export async function showSchedule(
  trainer: Trainer,
  info: SessionInfo,
  shown: Shown,
): Promise<void> {
  const { totalSteps } = info;
  const { lrScheduler } = trainer.settings.values;
  shown.controls.offerDecay(canDecay(lrScheduler, info) ? (info.scheduleStart ?? Infinity) : 0);
  byId('more-steps', HTMLInputElement).valueAsNumber = Math.max(1, Math.round(totalSteps / 2));
  const type = lrScheduler?.type;
  const rates =
    type === 'cosine' || type === 'linear'
      ? 'Its schedule is stretched over all steps, so that the learning rate first rises again.'
      : type === 'constant'
        ? 'Its learning rate stays the same.'
        : 'Its learning rate stays what it was at the end.';
  byId('longer-facts', HTMLElement).textContent = `The same run continues. ${rates}`;
  await showPlan(trainer, totalSteps, shown);
}

/** Lets the learning rate decay from now on. A start that is planned for later changes only when the run is opened again. */
export async function decay(
  trainer: Trainer,
  shown: Shown,
  reopen: (changes: Changes) => Promise<void>,
): Promise<void> {
  const { controls } = shown;
  controls.offerDecay(0);
  const { scheduleStart, totalSteps } = await trainer.info();
  if (scheduleStart === undefined) {
    await trainer.startDecay();
    controls.say('The learning rate decays from the next step on.');
    return showPlan(trainer, totalSteps, shown);
  }
  controls.say('Saving the run, to open it again with an earlier decay …');
  await trainer.pause();
  const { lrScheduler } = trainer.settings.values;
  await reopen({ settings: { lrScheduler: decayingAfter(trainer.completedSteps, lrScheduler) } });
}

/** Returns the change that gives a run the chosen number of further steps. */
export const moreSteps = ({ snapshot }: Trainer): Changes => ({
  settings: { steps: snapshot.totalSteps + byId('more-steps', HTMLInputElement).valueAsNumber },
  override: ['steps'],
});
