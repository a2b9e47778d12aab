/** Downloads that are kept in this browser; neither a GPU nor the core is needed. */
import type { WorkerCall } from './call.js';
import { listOfStrings } from './checks.js';
import { askOwnWorker } from './own-worker.js';
import type { DownloadInfo } from '../protocol/reports.js';

/** Lists the downloads that are kept in this browser, whole or in part, by name. */
export const listDownloads = (options: WorkerCall = {}): Promise<DownloadInfo[]> =>
  askOwnWorker('download.list', undefined, options);

/**
 * Removes downloads by their names, or those of a repository by `hf:owner/name`, or by default all. Returns the names of what was removed.
 */
export async function removeDownloads(
  names?: string | readonly string[],
  options: WorkerCall = {},
): Promise<string[]> {
  const given: unknown = typeof names === 'string' ? [names] : names;
  const list = given === undefined ? undefined : (listOfStrings(given, 'names') as string[]);
  return askOwnWorker('download.remove', { names: list }, options);
}
