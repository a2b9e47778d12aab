/** Options of calls. */
import type { Progress } from '../protocol/reports.js';
import type { WorkerOptions } from './spawn.js';

/** Options of every long call. */
export interface Call {
  signal?: AbortSignal;
  onProgress?: (progress: Progress) => void;
}
/** Options of a call that starts a worker of its own. */
export interface WorkerCall extends WorkerOptions, Call {}
