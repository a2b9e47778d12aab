/** Progress of a call in the form in which it is reported to the page. */
import type { PhaseProgress } from '../protocol/reports.js';

/** Work of which nothing remains is complete. */
export const progressOf = (
  phase: PhaseProgress['phase'],
  file: string | undefined,
  loaded: number,
  total: number,
): PhaseProgress => ({
  phase,
  file,
  loaded,
  total,
  fraction: total > 0 ? Math.min(1, loaded / total) : 1,
});

/** The beginning of a phase. */
export const phase = (name: PhaseProgress['phase'], file?: string): PhaseProgress =>
  progressOf(name, file, 0, 1);
export const ready: PhaseProgress = progressOf('ready', undefined, 1, 1);
