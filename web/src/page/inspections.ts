/** What files are, and whether an export arrived whole: without a GPU, each in a worker of its own. */
import type { WorkerCall } from './call.js';
import { aborted } from '../protocol/errors.js';
import { toSources } from './inputs.js';
import type { FilesInput } from './inputs.js';
import { openingOf } from './model.js';
import type { OpenOptions } from './model.js';
import type { Ask, Reply, Tag } from '../protocol/protocol.js';
import type { InspectReport, Receipt, Verification } from '../protocol/reports.js';
import { spawn, workerOptions } from './spawn.js';

export interface InspectOptions extends Omit<OpenOptions, 'adapter' | 'allowNonFinite'> {
  /** Read each file as this format, whatever the name and first bytes say. */
  format?: string;
  /** Read all bytes, not only the headers. false */
  read?: boolean;
}
/** The core reads a file without a pause, so an abort ends its worker. */
const GRACE_MILLIS = 50;

async function asked<T extends Tag>(tag: T, ask: Ask<T>, { signal, onProgress, ...worker }: WorkerCall): Promise<Reply<T>> {
  const connection = await spawn(workerOptions(worker));
  try {
    return await connection.call(tag, ask, { signal, onProgress, graceMillis: GRACE_MILLIS });
  } finally {
    connection.close(aborted(tag));
  }
}

/** What these files are together and what can be done with them; what is refused of them is an answer. Of a URL only the headers are asked for, by range. */
export async function inspectFiles(files: FilesInput, { request, mergeAdapter, format, read = false, ...call }: InspectOptions = {}): Promise<InspectReport> {
  return asked('files.inspect', { ...(await openingOf(files, request, mergeAdapter, 'mergeAdapter')), format, read }, call);
}

/** Recomputes what the receipt of an export states; without `receipt` it is the `tabtune.receipt.json` among the files. */
export async function verifyFiles(files: FilesInput, receipt?: Receipt, call: WorkerCall = {}): Promise<Verification> {
  return asked('files.verify', { sources: await toSources(files, 'files'), receipt: receipt === undefined ? undefined : JSON.stringify(receipt) }, call);
}
