/** Tests the labels of the demo's axes: as many decimals as their distance needs. */
import { expect, it } from 'vitest';

import { labelsOf, labelsOfBytes } from '../demo/ticks.js';

it('labels_of_near_ticks_differ', () => {
  expect(labelsOf([6, 6.025, 6.05, 6.075])).toEqual(['6.000', '6.025', '6.050', '6.075']);
  expect(labelsOf([6, 6.1, 6.2])).toEqual(['6.0', '6.1', '6.2']);
  expect(labelsOf([0, 2, 4])).toEqual(['0', '2', '4']);
  expect(labelsOf([2.5])).toEqual(['2.5']);
});

it('rates_are_written_in_powers_of_ten_and_speeds_in_groups', () => {
  expect(labelsOf([0, 0.00005, 0.0001, 0.00015])).toEqual(['0', '0.5e-4', '1.0e-4', '1.5e-4']);
  expect(labelsOf([0, 0.001, 0.002])).toEqual(['0.000', '0.001', '0.002']);
  expect(labelsOf([0, 12500, 25000])).toEqual(['0', '12\u202f500', '25\u202f000']);
});

it('a_tick_without_a_label_has_none', () => {
  expect(labelsOf([1, null, 10])).toEqual(['1', '', '10']);
  expect(labelsOf([])).toEqual([]);
});

it('every_distance_that_a_chart_chooses_gives_different_labels', () => {
  for (let power = -7; power < 6; power++)
    for (const step of [1, 2, 2.5, 5]) {
      const ticks = [7, 8, 9, 10].map((at) => at * step * 10 ** power);
      expect(new Set(labelsOf(ticks)).size).toBe(4);
    }
});

it('bytes_are_written_in_one_unit', () => {
  expect(labelsOfBytes([0, 250e6, 500e6])).toEqual(['0 MB', '250 MB', '500 MB']);
  expect(labelsOfBytes([1.25e9, null, 1.3e9])).toEqual(['1.25 GB', '', '1.30 GB']);
});
