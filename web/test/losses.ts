/** Ways to lose a worker, once, in a given call of the core. */
import type { CreateOptions, Trainer, TrainerEvent } from '../src/index.js';
import { started } from '../src/testing/channel.js';
import { fake, panic } from '../src/testing/fake-calls.js';
import type { Called, CallName } from '../src/testing/fake-calls.js';
import { collect, trainerOf } from './runs.js';

export type Loss = 'lost' | 'panic';
const happen = (how: Loss, { worker }: Called): undefined | Promise<never> => {
  if (how === 'panic') return panic(worker);
  worker.device?.destroy();
  return undefined;
};

/** Makes the first `times` calls of that name (at or after `at`) lose their worker; later ones are served. */
export function loseIn(
  call: CallName,
  at = 0,
  how: Loss = 'lost',
  times = 1,
): { happened: number } {
  const count = { happened: 0 };
  fake.onCall = (called) => {
    if (called.call !== call || called.at < at || count.happened >= times) return undefined;
    count.happened += 1;
    return happen(how, called);
  };
  return count;
}

export const lossesOf = (events: readonly TrainerEvent[]): Map<number, number> =>
  new Map(
    events.flatMap((event) => (event.type === 'step' ? [[event.step, event.loss] as const] : [])),
  );
export const warningsOf = (events: TrainerEvent[]): string[] =>
  events.flatMap((event) => (event.type === 'warning' ? [event.code] : []));
export const statesOf = (events: TrainerEvent[]) =>
  events.flatMap((event) =>
    event.type === 'state' && event.state !== 'ready' ? [[event.state, event.step]] : [],
  );
/** Records the events that a trainer dispatches in addition to its loop. */
export function listened(trainer: Trainer): TrainerEvent[] {
  const events: TrainerEvent[] = [];
  for (const type of ['step', 'state', 'warning', 'checkpoint'] as const) {
    trainer.addEventListener(type, (event) => {
      const detail: unknown = Reflect.get(event, 'detail');
      events.push(detail as TrainerEvent);
    });
  }
  return events;
}
export async function unbroken(options: Partial<CreateOptions> = {}): Promise<Map<number, number>> {
  await using trainer = await trainerOf(options);
  return lossesOf(await collect(trainer.run()));
}
export const present = () => started.findLast(({ terminated }) => !terminated);
