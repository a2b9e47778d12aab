/** Steps, evaluations and samples of a run, in blocks: one for each generation, saved with it. */
import { historyEntry } from '../../protocol/events.js';
import type { HistoryEntry } from '../../protocol/events.js';
import { count, listOf, optional, record } from '../../protocol/parse.js';
import type { Parsed } from '../../protocol/parse.js';
import { everyGeneration } from './database.js';
import type { Database } from './database.js';

/** History between the generation `after` and the one at `step`. A run returned to an older generation branches there. */
const blockParser = record({ after: optional(count), step: count, entries: listOf(historyEntry) });
export type HistoryBlock = Parsed<typeof blockParser>;
export type Blocks = Map<number, HistoryBlock>;

/** Reads the blocks of a run by generation. Damaged blocks are left out: curves with a gap are better than none. */
export async function readBlocks(database: Database, run: string): Promise<Blocks> {
  const transaction = database.transaction('history');
  const [keys, values] = await Promise.all([
    transaction.store.getAllKeys(everyGeneration(run)),
    transaction.store.getAll(everyGeneration(run)),
  ]);
  const blocks: Blocks = new Map();
  for (const [at, [, generation]] of keys.entries()) {
    try {
      blocks.set(generation, blockParser(values[at], 'history'));
    } catch {
      continue;
    }
  }
  return blocks;
}

/** Returns the last step before `entries` began. */
export function startOf(entries: readonly HistoryEntry[], step: number): number {
  return entries.reduce(
    (least, entry) => (entry.type === 'step' ? Math.min(least, entry.step - 1) : least),
    step,
  );
}

export const upTo = (entries: readonly HistoryEntry[], step: number): HistoryEntry[] =>
  entries.filter((entry) => entry.step <= step);

/** Returns the generation at `step`, the `preferred` one if there are several; otherwise the last one before it. */
function generationAt(
  steps: ReadonlyMap<number, number>,
  step: number,
  preferred: number | undefined,
): number | undefined {
  if (preferred !== undefined && steps.get(preferred) === step) return preferred;
  const reached = [...steps]
    .filter(([, at]) => at <= step)
    .sort(([a, x], [b, y]) => y - x || b - a);
  return reached[0]?.[0];
}

const stepsOf = (blocks: Blocks): Map<number, number> =>
  new Map([...blocks].map(([generation, { step }]) => [generation, step]));

/** Returns a new block for a save, which follows the generation that its first entry follows. */
export function newBlock(
  blocks: Blocks,
  entries: readonly HistoryEntry[],
  step: number,
  preferred: number | undefined,
): HistoryBlock {
  return {
    after: generationAt(stepsOf(blocks), startOf(entries, step), preferred),
    step,
    entries: [...entries],
  };
}

/** Returns all entries up to a step, oldest first, along the branch that leads to it. */
export function historyOf(
  blocks: Blocks,
  upToStep: number,
  preferred: number | undefined,
): HistoryEntry[] {
  const chain: HistoryEntry[][] = [];
  const beyond = [...blocks]
    .filter(([, { step }]) => step > upToStep)
    .sort(([a], [b]) => b - a)[0]?.[0];
  const at = generationAt(stepsOf(blocks), upToStep, preferred);
  const exact = at !== undefined && blocks.get(at)?.step === upToStep;
  const seen = new Set<number>();
  // If no generation ends at the step, the newest one beyond it has more of the history than the last one before it.
  for (let next = exact ? at : (beyond ?? at); next !== undefined && !seen.has(next);) {
    seen.add(next);
    const block = blocks.get(next);
    if (block) chain.push(block.entries);
    next = block?.after;
  }
  return upTo(chain.reverse().flat(), upToStep);
}
