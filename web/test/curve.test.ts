import { describe, expect, it } from 'vitest';

import { Curve, strideOf } from '../demo/curve.js';

/** A falling loss with a spike at one step. */
const lossAt = (step: number): number => (step === 123_457 ? 99 : 4 / Math.sqrt(step));

function curve(steps: number): Curve {
  const made = new Curve();
  for (let step = 1; step <= steps; step++) made.push(step, lossAt(step), 1e-3);
  return made;
}

describe('curve', () => {
  it('a_long_run_is_few_points_and_keeps_its_spike', () => {
    const [steps, raw] = curve(300_000).losses();
    expect(steps.length).toBeLessThan(2100);
    expect(raw[steps.indexOf(123_457)]).toBe(99);
    expect([...steps].sort((a, b) => a - b)).toEqual(steps);
  });
  it('points_stay_where_they_are_while_the_run_grows', () => {
    const made = curve(10_000);
    const before = made.losses().map((column) => column.slice(0, 1000));
    for (let step = 10_001; step <= 12_000; step++) made.push(step, lossAt(step), 1e-3);
    expect(made.losses().map((column) => column.slice(0, 1000))).toEqual(before);
  });
  it('a_cut_curve_equals_one_that_ended_there', () => {
    const made = curve(5000);
    made.evaluation(5000, 1);
    made.cut(1234);
    expect(made.losses()).toEqual(curve(1234).losses());
  });
  it('a_repeated_step_cuts_the_curve', () => {
    const made = curve(50);
    made.push(21, lossAt(21), 1e-3);
    expect(made.losses()).toEqual(curve(21).losses());
    expect(made.lastStep).toBe(21);
  });
  it('rates_cover_the_plan_and_what_was_used', () => {
    const stride = strideOf(100_000);
    const rates = Array.from({ length: Math.ceil(100_000 / stride) }, (_, index) => index * stride);
    const [steps, plan, used] = curve(50_000).rates({ rates, stride });
    expect(steps.length).toBeLessThan(1025);
    expect(plan).toEqual(steps.map((step) => step - 1));
    expect(used.filter((rate) => rate !== null).length).toBe(Math.ceil(steps.length / 2));
  });
  it('validation_is_drawn_at_its_step', () => {
    const made = curve(20);
    made.evaluation(20, 0.5);
    made.push(21, 1, 1e-3);
    const [steps, , , validation] = made.losses();
    expect(validation[steps.indexOf(20)]).toBe(0.5);
    expect(validation.filter((value) => value !== null)).toEqual([0.5]);
  });
});
