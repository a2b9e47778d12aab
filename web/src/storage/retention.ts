/** Which generations of a run stay. */

/** What the choice depends on. */
export interface Candidate {
  generation: number;
  savedAt: number;
  kept?: boolean | undefined;
  validationLoss?: number | undefined;
}

/** Fewer than two would let one bad disk block be the end of a run. */
export const LEAST_KEPT = 2;

/** Of `candidates`, in the order of their generations: those that no limit and no lack of room takes. */
function alwaysKept(candidates: readonly Candidate[]): Set<number> {
  const newest = candidates.slice(-LEAST_KEPT);
  const best = candidates.filter(({ validationLoss = NaN }) => Number.isFinite(validationLoss)).sort((a, b) => (a.validationLoss ?? 0) - (b.validationLoss ?? 0)).slice(0, 1);
  return new Set([...newest, ...best, ...candidates.filter(({ kept }) => kept)].map(({ generation }) => generation));
}

/** The next to go: the one whose neighbours lie closest in time. The first has none before it, so it goes last. */
export function nextToGo(candidates: readonly Candidate[]): number | undefined {
  const sorted = [...candidates].sort((a, b) => a.generation - b.generation);
  const always = alwaysKept(sorted);
  let found: { generation: number; gap: number } | undefined;
  for (const [at, { generation }] of sorted.entries()) {
    if (always.has(generation)) continue;
    const [before, after] = [sorted[at - 1], sorted[at + 1]];
    const gap = before && after ? Math.abs(after.savedAt - before.savedAt) : Infinity;
    if (found === undefined || gap < found.gap) found = { generation, gap };
  }
  return found?.generation;
}

/** Those that go so that `limit` are left, or as many as are always kept: two at least. */
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
