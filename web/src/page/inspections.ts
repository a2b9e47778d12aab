/** What files are, whether an export arrived whole, and what one model has that another has not: without a GPU, each in a worker of its own. */
import type { WorkerCall } from './call.js';
import { ofKinds, positiveInteger, translate } from './checks.js';
import type { ExportTarget } from './export-options.js';
import { aimed } from './exporting.js';
import { toSources } from './inputs.js';
import type { FilesInput } from './inputs.js';
import { openingOf } from './model.js';
import type { OpenOptions } from './model.js';
import { ADAPTER } from '../protocol/generated/kinds.js';
import type { InspectReport, Receipt, Verification } from '../protocol/reports.js';
import type { Extraction } from '../protocol/written.js';
import { asked } from './own-worker.js';

export interface InspectOptions extends Omit<OpenOptions, 'adapter' | 'allowNonFinite'> {
  /** Read each file as this format, whatever the name and first bytes say. */
  format?: string;
  /** Read all bytes, not only the headers. false */
  read?: boolean;
}
export interface ExtractOptions extends WorkerCall {
  /** The model that was trained. */
  tuned: FilesInput;
  /** The model that it was trained from. */
  base: FilesInput;
  /** Rank of the factors. */
  r: number;
  /** The matrices that get factors, in the words of an adapter's settings. 'all-linear' */
  targetModules?: string | string[];
  /** Where the files are written as they are made; without it they are in the result. None */
  target?: ExportTarget;
}

/** What these files are together and what can be done with them; what is refused of them is an answer. Of a URL only the headers are asked for, by range. */
export async function inspectFiles(files: FilesInput, { request, mergeAdapter, format, read = false, ...call }: InspectOptions = {}): Promise<InspectReport> {
  return asked('files.inspect', { ...(await openingOf(files, request, mergeAdapter, 'mergeAdapter')), format, read }, call);
}

/** Recomputes what the receipt of an export states; without `receipt` it is the `tabtune.receipt.json` among the files. */
export async function verifyFiles(files: FilesInput, receipt?: Receipt, call: WorkerCall = {}): Promise<Verification> {
  return asked('files.verify', { sources: await toSources(files, 'files'), receipt: receipt === undefined ? undefined : JSON.stringify(receipt) }, call);
}

/** The LoRA adapter of PEFT that comes closest to what `tuned` has and `base` has not, two models of one shape: for each matrix the best product of rank `r`. */
export async function extractAdapter({ tuned, base, r, targetModules = 'all-linear', target, ...call }: ExtractOptions): Promise<Extraction> {
  positiveInteger(r, 'r');
  const options = JSON.stringify(translate({ r, targetModules }, ofKinds(ADAPTER), ''));
  const { moved, ...where } = target === undefined ? { container: 'files' as const } : aimed(target);
  return asked('files.extract', { tuned: await toSources(tuned, 'tuned'), base: await toSources(base, 'base'), options, ...where }, call, moved);
}
