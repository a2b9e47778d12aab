/** The demo's continuation of a text by a model that only gives probabilities. */
import { expect, it } from 'vitest';

import { TabtuneError } from '../src/index.js';
import type { Score } from '../src/index.js';
import { chosen, continued } from '../demo/panels/continued.js';

const likely = (...probs: number[]): Score['tokens'][number]['top'] =>
  probs.map((prob, id) => ({ id, text: String(id), prob }));

it('is_the_likeliest_token_without_a_temperature_and_follows_the_probabilities_with_one', () => {
  const top = likely(0.5, 0.3, 0.2);
  expect(chosen(top, 0, 0.99)).toBe(0);
  expect([0, 0.49, 0.51, 0.79, 0.81, 0.999].map((draw) => chosen(top, 1, draw))).toEqual([
    0, 0, 1, 1, 2, 2,
  ]);
  // At half the temperature the weights are 0.25, 0.09 and 0.04 of 0.38.
  expect(chosen(top, 0.5, 0.65)).toBe(0);
  expect(chosen(top, 0.5, 0.67)).toBe(1);
  expect(chosen([], 1, 0.5)).toBeUndefined();
});

/** A model whose likeliest token is the one after the last, in a context of six tokens. */
const counting = {
  asked: [] as number[][],
  async score(ids: readonly number[]): Promise<Score> {
    this.asked.push([...ids]);
    if (ids.length > 6) throw new TabtuneError('BAD_OPTION', 'too long', { code: 'model.context' });
    const next = (ids.at(-2) ?? 0) + 1;
    const last = { id: 0, text: '', top: [{ id: next, text: '', prob: 1 }] };
    return {
      tokens: [...ids.slice(1).map((id) => ({ id, text: '', top: [] })), last],
      warnings: [],
    };
  },
};

async function whole(prompt: number[], maxTokens: number, ends: number[]): Promise<unknown[]> {
  const choice = { maxTokens, temperature: 0, seed: 0 };
  const { signal } = new AbortController();
  const stream = continued(counting, prompt, choice, { ends, signal });
  let made: readonly number[] = [];
  for (;;) {
    const next = await stream.next();
    if (next.done === true) return [[...made], next.value];
    made = next.value;
  }
}

it('ends_at_a_token_that_ends_a_text_at_the_length_and_where_the_context_is_full', async () => {
  expect(await whole([4, 5], 9, [8])).toEqual([[6, 7], 'stop']);
  expect(counting.asked[0]).toEqual([4, 5, 4]);
  expect(await whole([5], 2, [])).toEqual([[6, 7], 'length']);
  expect(await whole([5], 9, [])).toEqual([[6, 7, 8, 9, 10], 'context']);
  await expect(whole([1, 2, 3, 4, 5, 6], 9, [])).rejects.toThrow('too long');
});
