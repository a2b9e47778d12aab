/** What files are, whether an export arrived whole, and what one model has that another has not: without a GPU, each in a worker of its own. */
import type { WorkerCall } from './call.js';
import { naturalNumber, objectOf, ofKinds, positiveInteger, translate, truth, words } from './checks.js';
import type { ExportTarget } from './export-options.js';
import { aimed } from './exporting.js';
import { optionsOf } from './given.js';
import { beginningOf, toData, withWeights } from './data-inputs.js';
import type { DataInput } from './data-inputs.js';
import { toSources } from './inputs.js';
import type { FilesInput } from './inputs.js';
import { Model } from './model.js';
import { openingOf } from './opening.js';
import type { OpenOptions } from './opening.js';
import { trainSettings } from './options.js';
import type { TrainOptions } from './options.js';
import type { DataInspection, FileSummary } from '../protocol/data-report.js';
import { badOption } from '../protocol/errors.js';
import { json } from '../protocol/json.js';
import { ADAPTER } from '../protocol/generated/kinds.js';
import type { InspectReport, Receipt } from '../protocol/reports.js';
import type { Extraction, Verification } from '../protocol/written.js';
import { asked, workerCall } from './own-worker.js';

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
export async function inspectFiles(files: FilesInput, options: InspectOptions = {}): Promise<InspectReport> {
  const { request, mergeAdapter, format, read = false, ...rest } = optionsOf(options, 'the inspection');
  const call = workerCall(rest);
  if (format !== undefined) words(format, 'format');
  truth(read, 'read');
  return asked('files.inspect', { ...(await openingOf(files, request, mergeAdapter, 'mergeAdapter', call.signal)), format, read }, call);
}

export interface DataOptions extends WorkerCall, TrainOptions {
  /** The model that is to learn the data: its tokenizer, chat template and context. Without one only forms and rows are known. None */
  model?: Model;
  /** Data that are evaluated, as a run takes them. None */
  validationData?: DataInput;
  /** Examples that are shown token by token. 3 */
  show?: number;
  /** Reads so many bytes of a File or Blob and tells what those are: a preview of a large file in little time. All */
  bytes?: number;
}

/** What these data are: the form of the file, and its rows of each kind. */
export function inspectData(data: DataInput, options?: DataOptions & { model?: undefined }): Promise<FileSummary[]>;
/** What a run of the model with these options would learn of the data, with its first examples token by token. Nothing is trained, and no GPU is needed. */
export function inspectData(data: DataInput, options: DataOptions & { model: Model }): Promise<DataInspection>;
export async function inspectData(data: DataInput, options: DataOptions = {}): Promise<FileSummary[] | DataInspection> {
  const { model, validationData, show = 3, bytes, signal, onProgress, workerUrl, wasmUrl, wasmBinary, worker, ...settings } = optionsOf(options, 'the inspection');
  if (model !== undefined && !(model instanceof Model)) throw badOption('model', 'a model of openModel or newModel', model);
  naturalNumber(show, 'show');
  trainSettings(settings);
  const { read, partial } = beginningOf(data, bytes);
  const { spec, weights } = await toData(read, validationData, signal);
  const { config } = trainSettings(withWeights(settings, weights));
  if (model) return model.call('model.data', { data: spec, config, partial, show }, { signal, onProgress });
  return asked('files.data', { data: spec, config, partial }, workerCall({ signal, onProgress, workerUrl, wasmUrl, wasmBinary, worker }));
}

/** Recomputes what the receipt of an export states; without `receipt` it is the `tabtune.receipt.json` among the files. */
export async function verifyFiles(files: FilesInput, receipt?: Receipt, options: WorkerCall = {}): Promise<Verification> {
  const call = workerCall(optionsOf(options, 'the verification'));
  const { signal } = call;
  if (receipt !== undefined) objectOf(receipt, 'receipt');
  return asked('files.verify', { sources: await toSources(files, 'files', signal), receipt: receipt === undefined ? undefined : json(receipt) }, call);
}

/** The LoRA adapter of PEFT that comes closest to what `tuned` has and `base` has not, two models of one shape: for each matrix the best product of rank `r`. */
export async function extractAdapter(given: ExtractOptions): Promise<Extraction> {
  const { tuned, base, r, targetModules = 'all-linear', target, ...rest } = optionsOf(given, 'the extraction');
  const call = workerCall(rest);
  const { signal } = call;
  positiveInteger(r, 'r');
  const options = json(translate({ r, targetModules }, ofKinds(ADAPTER), ''));
  const { moved, ...where } = target === undefined ? { container: 'files' as const } : aimed(target);
  return asked('files.extract', { tuned: await toSources(tuned, 'tuned', signal), base: await toSources(base, 'base', signal), options, ...where }, call, moved);
}
