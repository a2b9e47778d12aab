/** Continues token ids with a model that can only be asked for probabilities: token by token, among the likeliest of each place. */
import type { Score, ScoreOptions } from 'tabtune';

import { codeOf } from '../words.js';

/** How an answer is chosen. */
export interface Choice {
  temperature: number;
  maxTokens: number;
  seed: number;
}

/** Number of likeliest tokens that one is chosen from, at most what a score reports. */
export const LIKELIEST = 20;

export interface Scorer {
  score: (of: readonly number[], options: ScoreOptions) => Promise<Score>;
}

/** Returns numbers from 0 to 1 that depend on the seed alone (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

type Likely = Score['tokens'][number]['top'];

/** Chooses one of the likeliest tokens: the first without a temperature, else by `draw`, a number below 1. */
export function chosen(top: Likely, temperature: number, draw: number): number | undefined {
  if (!(temperature > 0)) return top[0]?.id;
  // p ← p^(1/T), relative to the largest
  const most = top[0]?.prob ?? 1;
  const weights = top.map(({ prob }) => (prob / most) ** (1 / temperature));
  let left = draw * weights.reduce((sum, weight) => sum + weight, 0);
  const at = weights.findIndex((weight) => (left -= weight) < 0);
  return top[at < 0 ? top.length - 1 : at]?.id;
}

/** Yields the ids of the continuation so far. One of the `ends` ends it. Returns why it ended. */
export async function* continued(
  model: Scorer,
  prompt: readonly number[],
  { maxTokens, temperature, seed }: Choice,
  { ends, signal }: { ends: readonly number[]; signal: AbortSignal },
): AsyncGenerator<readonly number[], 'stop' | 'length' | 'context'> {
  const random = randomOf(seed);
  const made: number[] = [];
  const top = temperature > 0 ? LIKELIEST : 1;
  while (made.length < maxTokens) {
    // The last token only marks the place that is asked about.
    const ids = [...prompt, ...made, prompt[0] ?? 0];
    let score: Score;
    try {
      score = await model.score(ids, { top, signal });
    } catch (thrown) {
      if (made.length > 0 && codeOf(thrown) === 'model.context') return 'context';
      throw thrown;
    }
    const next = chosen(score.tokens.at(-1)?.top ?? [], temperature, random());
    if (next === undefined || ends.includes(next)) return 'stop';
    made.push(next);
    yield made;
  }
  return 'length';
}
