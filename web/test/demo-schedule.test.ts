/** Tests when the demo offers an earlier decay, and the schedule that it asks for. */
import { expect, it } from 'vitest';

import { canDecay, decayingAfter } from '../demo/schedule.js';

const wsd = { type: 'wsd', warmupSteps: 20, decaySteps: 80, decayStartStep: 320 } as const;
const infinite = { type: 'infinite', warmupSteps: 5, cooldownSteps: 10, tau: 3 } as const;

it('a_decay_is_offered_until_it_begins', () => {
  expect(canDecay(wsd, { completedSteps: 319, scheduleStart: 320 })).toBe(true);
  expect(canDecay(wsd, { completedSteps: 320, scheduleStart: 320 })).toBe(false);
  expect(canDecay(infinite, { completedSteps: 9 })).toBe(true);
  expect(canDecay({ type: 'cosine' }, { completedSteps: 9 })).toBe(false);
  expect(canDecay(undefined, { completedSteps: 9 })).toBe(false);
});

it('a_decay_begins_now_or_where_warmup_and_cooldown_end', () => {
  expect(decayingAfter(50, wsd)).toEqual({ ...wsd, decayStartStep: 50 });
  expect(decayingAfter(3, wsd)).toEqual({ ...wsd, decayStartStep: 20 });
  expect(decayingAfter(3, infinite)).toEqual({ ...infinite, annealingStartStep: 15 });
});
