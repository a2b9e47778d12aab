/** Tests the values that the demo says for a step of its chart. */
import { expect, it } from 'vitest';

import { wordsAt } from '../demo/readout.js';
import type { Read } from '../demo/readout.js';

const chart: Read = {
  name: 'Loss',
  columns: [
    [1, 2, 1000],
    [6, 5, 4],
    [null, 5.5, null],
  ],
  lines: [
    { label: 'each step', shown: true },
    { label: 'validation', shown: true },
  ],
  write: (value) => value.toFixed(1),
};

it('says_each_value_of_a_step_or_where_its_last_one_is_from', () => {
  expect(wordsAt(chart, 0)).toBe('Step 1: each step 6.0.');
  expect(wordsAt(chart, 1)).toBe('Step 2: each step 5.0, validation 5.5.');
  expect(wordsAt(chart, 2)).toBe('Step 1\u202f000: each step 4.0, validation 5.5 at step 2.');
  expect(wordsAt(chart, 3)).toBe('');
});

it('says_nothing_of_a_line_that_is_hidden', () => {
  const [raw] = chart.lines;
  const lines = [
    { label: raw?.label ?? '', shown: false },
    { label: 'validation', shown: false },
  ];
  expect(wordsAt({ ...chart, lines }, 1)).toBe('Step 2: no line is shown.');
});
