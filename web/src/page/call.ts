/** Options that calls have in common. */
import type { Progress } from '../protocol/reports.js';
import type { WorkerOptions } from './spawn.js';

/** Options of every long call. */
export interface Call {
  /** Aborts the call, which then rejects with an `AbortError` and leaves the state of the last whole step. */
  signal?: AbortSignal | undefined;
  /** Called with the progress. If it throws, the error is reported as one of the page and does not affect the call. */
  onProgress?: ((progress: Progress) => void) | undefined;
}
/** Options of a call that starts its own worker. */
export interface WorkerCall extends WorkerOptions, Call {}
/** Options of `previewSchedule`. */
export interface PreviewOptions {
  /** Number of steps from one rate to the next. Default: 1. */
  stride?: number | undefined;
}
