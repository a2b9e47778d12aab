/** Options of calls. */
import type { Progress } from '../protocol/reports.js';
import type { WorkerOptions } from './spawn.js';

/** Options of every long call. */
export interface Call {
  signal?: AbortSignal | undefined;
  /** May throw: that is reported as an error of the page, and changes nothing here. */
  onProgress?: ((progress: Progress) => void) | undefined;
}
/** Options of a call that starts a worker of its own. */
export interface WorkerCall extends WorkerOptions, Call {}
