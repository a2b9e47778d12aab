/** Reports of files, without a GPU and without a model. */
import { aborted } from '../protocol/errors.js';
import { toSources } from './inputs.js';
import type { Input } from './inputs.js';
import type { OpenOptions } from './model.js';
import type { FileReport } from '../protocol/reports.js';
import { spawn, workerOptions } from './spawn.js';

export interface InspectOptions extends OpenOptions {
  /** Read as this format, whatever the name and first bytes say. */
  format?: string;
  /** Read all bytes, not only the header. true */
  read?: boolean;
}
/** The core reads a file without a pause, so an abort ends its worker. */
const GRACE_MILLIS = 50;

/** What `tabtune inspect --json` prints of each file, in the given order; the report of a refused file has its refusals. */
export async function inspectFiles(files: Input | readonly Input[], options: InspectOptions = {}): Promise<FileReport[]> {
  const { signal, onProgress, format, read = true, ...rest } = options;
  const sources = await toSources(files, 'files');
  const connection = await spawn(workerOptions(rest));
  try {
    return await connection.call('files.inspect', { sources, format, read }, { signal, onProgress, graceMillis: GRACE_MILLIS });
  } finally {
    connection.close(aborted('the inspection'));
  }
}
