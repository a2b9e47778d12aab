/** The progress of a whole call, from that of its phases. */
import { notify } from './given.js';
import type { Tag } from '../protocol/protocol.js';
import type { PhaseProgress, Progress } from '../protocol/reports.js';

type Phase = Progress['phase'];

/** Usual parts of the time of a call. A phase that is in no list, such as a save, is alone. */
const WEIGHTS: Partial<Record<Phase, number>> = {
  download: 60,
  read: 10,
  verify: 10,
  compile: 5,
  upload: 15,
  export: 60,
};
/** The phases that requests may have, in their usual order. */
const PHASES: Partial<Record<Tag, readonly Phase[]>> = {
  'trainer.create': ['download', 'verify', 'compile', 'upload'],
  'trainer.resume': ['verify', 'download', 'upload'],
  'trainer.load': ['verify', 'upload'],
  'model.export': ['download', 'export'],
  'files.verify': ['download', 'verify'],
  'files.extract': ['download', 'read', 'export'],
  'delta.derive': ['download', 'read', 'export'],
  'delta.use': ['download', 'read', 'export'],
};
const OTHERS: readonly Phase[] = ['download', 'read'];

/** Returns the share of what is left of a request that one of its phases takes: its weight among its own and those of the later phases. */
function shareOf(phase: Phase, tag: Tag): number {
  const list = PHASES[tag] ?? OTHERS;
  const at = list.indexOf(phase);
  const left = at < 0 ? [phase] : list.slice(at);
  const weights = left.map((each) => WEIGHTS[each] ?? 1);
  return (weights[0] ?? 1) / weights.reduce((sum, weight) => sum + weight, 0);
}

/**
 * Returns a function that adds `overall` to the progress of a request. When a phase begins, it gets its share of what is left, so that a phase that does
 * not occur leaves its share to the later ones; a phase that occurs again, as after a loss of the GPU, gets a share of the rest.
 */
function counting(tag: Tag): (progress: PhaseProgress) => Progress {
  let [overall, start] = [0, 0];
  let current: Phase | undefined;
  /** Downloads of the current phase, each of which reports its own fraction. */
  const files = new Map<string, PhaseProgress>();
  return (progress) => {
    const { phase, file = '' } = progress;
    if (phase !== current) {
      [current, start] = [phase, overall];
      files.clear();
    }
    let { fraction } = progress;
    if (phase === 'download') {
      files.set(file, progress);
      const all = [...files.values()];
      const total = all.reduce((sum, one) => sum + one.total, 0);
      if (total > 0) fraction = all.reduce((sum, one) => sum + one.fraction * one.total, 0) / total;
    }
    const reached = start + (1 - start) * shareOf(phase, tag) * fraction;
    overall = phase === 'ready' ? 1 : Math.max(overall, Math.min(1, reached));
    return { ...progress, overall };
  };
}

/** The listeners that were made here. */
const counted = new WeakSet<(progress: PhaseProgress) => void>();

/** @internal Returns a listener that passes the progress of a request on to the caller's, with `overall`. One that does so already is returned as it is. */
export function withOverall(
  listener: ((progress: Progress) => void) | undefined,
  tag: Tag,
): ((progress: PhaseProgress) => void) | undefined {
  if (listener === undefined) return undefined;
  // Every listener in the set takes progress without `overall`.
  const own = listener as (progress: PhaseProgress) => void;
  if (counted.has(own)) return own;
  const add = counting(tag);
  const made = (progress: PhaseProgress): void => notify(listener, add(progress));
  counted.add(made);
  return made;
}
