/** The plan of the next run: its memory, whether it fits, how long it takes, and its learning rates. */
import { Trainer } from 'tabtune';
import type { Model, TrainOptions } from 'tabtune';

import { strideOf } from '../curve.js';
import type { Plan } from '../curve.js';
import { byId } from '../dom.js';
import type { Trained } from '../optimizers.js';
import { driveOptions } from '../settings.js';
import { FitPanel } from './fit.js';
import { compareKinds, showMemory } from './memory.js';
import { TimePanel } from './time.js';

export interface Planning {
  /** Called with the planned rates. */
  onPlan: (plan: Plan) => void;
  /** Starts the run as it is. */
  start: () => void;
  /** Measures steps of the run. */
  measure: () => void;
}
/** The next run. */
export interface NextRun {
  options: TrainOptions & { steps: number; seqLen: number };
  trained: Trained;
  /** Identifies all that the duration of a step depends on. */
  speedKey: string;
  /** False if measuring would download the model once more. */
  canMeasure: boolean;
}

export class PlanPanel {
  readonly fit: FitPanel;
  readonly #time: TimePanel;

  constructor(private readonly planning: Planning) {
    this.fit = new FitPanel(planning.start);
    this.#time = new TimePanel(planning.measure);
  }

  /** Shows the plan for a model, while it `isCurrent`. */
  async show(
    model: Model,
    { options, trained, speedKey, canMeasure }: NextRun,
    isCurrent: () => boolean,
  ): Promise<void> {
    const stride = strideOf(options.steps);
    const [estimate, rates] = [
      await Trainer.estimate(model, options),
      await model.previewSchedule(options, options.steps, { stride }),
    ];
    if (!isCurrent()) return;
    await compareKinds(model, trained);
    if (!isCurrent()) return;
    showMemory(estimate);
    await this.fit.show(model, options, trained, estimate, isCurrent);
    if (!isCurrent()) return;
    this.#time.show(speedKey, options, driveOptions(trained), canMeasure);
    this.planning.onPlan({ rates, stride });
  }

  /** Shows no duration, because there is no plan. */
  none(): void {
    byId('time', HTMLElement).hidden = true;
  }
}
