/** Decides which generations of a run are kept. */

/** Facts that the choice depends on. */
export interface Candidate {
  generation: number;
  step: number;
  kept?: boolean | undefined;
  validationLoss?: number | undefined;
}

/** Minimum number of generations to keep: with only one, a single bad disk block could end a run. */
export const LEAST_KEPT = 2;

/** Returns the generations that are kept regardless of the limit and the free space. `candidates` are in the order of their generations. */
function alwaysKept(candidates: readonly Candidate[]): Set<number> {
  const newest = candidates.slice(-LEAST_KEPT);
  const best = candidates
    .filter(({ validationLoss = NaN }) => Number.isFinite(validationLoss))
    .sort((a, b) => (a.validationLoss ?? 0) - (b.validationLoss ?? 0))
    .slice(0, 1);
  return new Set(
    [...newest, ...best, ...candidates.filter(({ kept }) => kept)].map(
      ({ generation }) => generation,
    ),
  );
}

/** Returns the next generation to remove: the one whose neighbours are the fewest steps apart. The first has no predecessor, so it is removed last. */
export function nextToGo(candidates: readonly Candidate[]): number | undefined {
  const sorted = [...candidates].sort((a, b) => a.generation - b.generation);
  const always = alwaysKept(sorted);
  let found: { generation: number; gap: number } | undefined;
  for (const [at, { generation }] of sorted.entries()) {
    if (always.has(generation)) continue;
    const [before, after] = [sorted[at - 1], sorted[at + 1]];
    const gap = before && after ? Math.abs(after.step - before.step) : Infinity;
    if (found === undefined || gap < found.gap) found = { generation, gap };
  }
  return found?.generation;
}

/** Returns the generations to remove so that `limit` remain, or as many as are always kept, which is at least two. */
export function beyondLimit(candidates: readonly Candidate[], limit: number): number[] {
  let left = [...candidates];
  const gone: number[] = [];
  while (left.length > limit) {
    const next = nextToGo(left);
    if (next === undefined) break;
    gone.push(next);
    left = left.filter(({ generation }) => generation !== next);
  }
  return gone;
}
