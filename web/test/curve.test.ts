/** Tests the columns of the demo's charts: few points for many steps, a line through the data, and what a cut leaves. */
import { describe, expect, it } from 'vitest';

import { Curve, joined, strideOf } from '../demo/curve.js';

/** A falling loss with a spike at one step. */
const lossAt = (step: number): number => (step === 123_457 ? 99 : 4 / Math.sqrt(step));

function push(curve: Curve, step: number, loss: number): void {
  const rest = { epoch: 0, gradNorm: 1 / step, learningRate: 1e-3, tokens: 8, secs: 2 };
  curve.push({ type: 'step', step, loss, ...rest });
}

function curve(steps: number, of = lossAt): Curve {
  const made = new Curve();
  for (let step = 1; step <= steps; step++) push(made, step, of(step));
  return made;
}

describe('curve', () => {
  it('a_long_run_is_few_points_and_keeps_its_spike', () => {
    const [steps, raw] = curve(150_000).losses();
    expect(steps.length).toBeLessThan(2100);
    expect(raw[steps.indexOf(123_457)]).toBe(99);
    expect([...steps].sort((a, b) => a - b)).toEqual(steps);
  });
  it('points_stay_where_they_are_while_the_run_grows', () => {
    const made = curve(10_000);
    const before = made.losses().map((column) => column.slice(0, 1000));
    for (let step = 10_001; step <= 12_000; step++) push(made, step, lossAt(step));
    expect(made.losses().map((column) => column.slice(0, 1000))).toEqual(before);
  });
  it('the_smoothed_line_goes_through_the_data', () => {
    // A steep start, as that of a short run, with noise.
    const noisy = (step: number): number => 2 + 4 / step + 0.2 * Math.sin(step * 12.9898);
    for (const length of [1, 2, 5, 10, 100, 1000]) {
      const [steps, raw, smooth] = curve(length, noisy).losses();
      expect(smooth[0]).toBe(raw[0]);
      const outside = steps.filter((step, index) => {
        // At most a quarter of the steps so far, and never more than 25, to each side.
        const reach = Math.min(25, Math.floor((step - 1) / 4));
        const near = raw.slice(index - reach, index + reach + 1).map(Number);
        const mean = smooth[index] ?? 0;
        return mean < Math.min(...near) - 1e-9 || mean > Math.max(...near) + 1e-9;
      });
      expect(outside).toEqual([]);
    }
  });
  it('a_chart_of_100_000_steps_is_computed_within_a_frame', () => {
    const made = curve(100_000);
    const times = Array.from({ length: 15 }, () => {
      const begun = performance.now();
      const [steps, , means] = made.losses();
      joined(made.losses(), [steps, means]);
      made.norms();
      return performance.now() - begun;
    }).sort((a, b) => a - b);
    expect(times[0]).toBeLessThan(16);
  });
  it('a_cut_curve_equals_one_that_ended_there', () => {
    const made = curve(5000);
    made.evaluation(5000, 1);
    made.cut(1234);
    expect(made.losses()).toEqual(curve(1234).losses());
  });
  it('a_repeated_step_cuts_the_curve', () => {
    const made = curve(50);
    push(made, 21, lossAt(21));
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
    push(made, 21, 1);
    const [steps, , , validation] = made.losses();
    expect(validation[steps.indexOf(20)]).toBe(0.5);
    expect(validation.filter((value) => value !== null)).toEqual([0.5]);
  });
  it('perplexity_speed_and_norm_are_those_of_the_steps', () => {
    const made = curve(3);
    made.evaluation(3, 2);
    const [, perplexity, , validation] = made.perplexities();
    expect(perplexity[0]).toBeCloseTo(Math.exp(4));
    expect(validation).toEqual([null, null, Math.exp(2)]);
    expect(made.speeds()[1]).toEqual([4, 4, 4]);
    expect(made.norms()[1]).toEqual([1, 1 / 2, 1 / 3]);
    expect(made.hasMemory).toBe(false);
  });
  it('two_curves_share_their_steps', () => {
    const both = joined(
      [
        [1, 2, 4],
        [10, 20, 40],
      ],
      [
        [2, 3],
        [7, 8],
      ],
    );
    expect(both).toEqual([
      [1, 2, 3, 4],
      [10, 20, null, 40],
      [null, 7, 8, null],
    ]);
  });
});
