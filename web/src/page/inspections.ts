/** Inspects files, verifies exports and extracts adapters: without a GPU, each call in its own worker. */
import type { WorkerCall } from './call.js';
import {
  allOf,
  boolean,
  ifGiven,
  objectOf,
  ofKinds,
  oneOf,
  positiveInteger,
  string,
  translate,
} from './checks.js';
import type { ExportTarget } from './export-options.js';
import { reaching } from './exporting.js';
import { optionsOf } from './given.js';
import { toSources } from './inputs.js';
import { HUB_OPTIONS, hubOptions } from './names.js';
import type { FilesInput } from './inputs.js';
import { signalOf } from './request-inputs.js';
import { openingOf } from './opening.js';
import type { OpenOptions } from './opening.js';
import { badOption } from '../protocol/errors.js';
import { plain } from '../protocol/plain.js';
import type { Values } from '../protocol/plain.js';
import { importRequest } from './requests.js';
import type { ImportRequest } from './requests.js';
import { ADAPTER } from '../protocol/generated/kinds.js';
import type { InspectReport, Receipt, StoredTensor } from '../protocol/reports.js';
import type { Extraction, Verification } from '../protocol/reports.js';
import { askOwnWorker, workerCall } from './own-worker.js';
import type { WorkerOptions } from './spawn.js';

/** Options of `inspectFiles`. */
export interface InspectOptions extends Omit<
  OpenOptions,
  'adapter' | 'resizeVocabulary' | 'chatTemplate' | 'allowNonFinite'
> {
  /** Reads each file as this format, regardless of its name and first bytes. */
  format?: string | undefined;
  /** Reads all bytes, not only the headers. Default: false. */
  read?: boolean | undefined;
  /** Adds the plan of an import: the tensors that `request` takes, and where their bytes are. Default: false. */
  plan?: boolean | undefined;
  /** With `plan`: names of the tensors of a GGUF file, those of the file or Hugging Face's. Default: 'source'. */
  names?: TensorNames | undefined;
}
/** Names of the tensors of a GGUF file: those of the file, or Hugging Face's, with rows and columns in its order. */
export type TensorNames = 'source' | 'hf';
/** Options of `readTensor`. */
export interface ReadOptions extends WorkerCall {
  /** Selection and renaming of tensors, as in the plan. Default: everything. */
  request?: Omit<ImportRequest, 'nonFinite'> | undefined;
  /** Names of the tensors of a GGUF file. Default: 'source'. */
  names?: TensorNames | undefined;
}
/** Names of the options of `readTensor` that do not concern its worker. */
const READ = ['request', 'names', 'signal', 'onProgress'];
/** Options of `extractAdapter`. */
export interface ExtractOptions extends WorkerCall {
  /** The trained model. */
  tuned: FilesInput;
  /** The model that it was trained from. */
  base: FilesInput;
  /** Rank of the factors. */
  r: number;
  /** Matrices that get factors, as in the settings of an adapter. Default: 'all-linear'. */
  targetModules?: string | string[] | undefined;
  /** Target to which the files are written while they are produced; without it they are in the result. */
  to?: ExportTarget | undefined;
}

/** Names of the options of `inspectFiles` that do not concern its worker. */
const INSPECT = Object.keys({
  request: 1,
  mergeAdapter: 1,
  format: 1,
  read: 1,
  plan: 1,
  names: 1,
  ...HUB_OPTIONS,
  signal: 1,
  onProgress: 1,
} satisfies Record<Exclude<keyof InspectOptions, keyof WorkerOptions>, 1>);

/**
 * Reports what the files form together and what can be done with them; a refusal is part of the report. For a URL, only the headers are requested, by
 * range.
 */
export async function inspectFiles(
  files: FilesInput,
  options: InspectOptions = {},
): Promise<InspectReport> {
  const {
    request,
    mergeAdapter,
    format,
    read = false,
    plan = false,
    names,
    hub,
    token,
    quant,
    keepDownloads,
    signal,
    ...rest
  } = optionsOf(options, 'the inspection');
  const [from, call] = allOf(
    () => hubOptions({ hub, token, quant, keepDownloads }),
    () => workerCall({ ...rest, signal: signalOf(signal, files, mergeAdapter) }, INSPECT),
    () => ifGiven(format, string, 'format'),
    () => boolean(read, 'read'),
    () => boolean(plan, 'plan'),
    () => importRequest(request),
  );
  if (names !== undefined && !plan) throw badOption('names', 'this only together with plan', names);
  const planned = planRequest(request, names);
  return askOwnWorker(
    'files.inspect',
    {
      ...(await openingOf(files, request, mergeAdapter, 'mergeAdapter', call.signal, from)),
      format,
      read,
      plan: plan ? planned : undefined,
    },
    call,
  );
}

/** Returns the core's request of a plan. */
const planRequest = (
  request: ImportRequest | undefined,
  names: TensorNames = 'source',
): Values => ({ ...importRequest(request), names: oneOf('source', 'hf')(names, 'names') });

/**
 * Reads one tensor of files in any form, by its name in their plan, with its bytes as they are stored. For a URL, only the headers and these bytes are
 * requested, by range.
 */
export async function readTensor(
  files: FilesInput,
  name: string,
  options: ReadOptions = {},
): Promise<StoredTensor> {
  const { request, names, signal, ...rest } = optionsOf(options, 'the reading');
  if (request && 'nonFinite' in request)
    throw badOption('request.nonFinite', 'none: values are returned as they are', 'one');
  const [, call, planned] = allOf(
    () => string(name, 'name'),
    () => workerCall({ ...rest, signal: signalOf(signal, files) }, READ),
    () => planRequest(request, names),
  );
  const ask = { request: planned, name };
  return askOwnWorker(
    'files.tensor',
    { ...ask, sources: await toSources(files, 'files', call.signal) },
    call,
  );
}

/** Options of `verifyFiles`. */
export interface VerifyOptions extends WorkerCall {
  /** The receipt of the export. Default: the `tabtune.receipt.json` among the files. */
  receipt?: Receipt | undefined;
}

/** Recomputes the statements of an export's receipt. */
export async function verifyFiles(
  files: FilesInput,
  options: VerifyOptions = {},
): Promise<Verification> {
  const { receipt, signal: ofCall, ...rest } = optionsOf(options, 'the verification');
  const [call] = allOf(
    () => workerCall({ ...rest, signal: signalOf(ofCall, files) }, ['receipt']),
    () => ifGiven(receipt, objectOf, 'receipt'),
  );
  const { signal } = call;
  return askOwnWorker(
    'files.verify',
    {
      sources: await toSources(files, 'files', signal),
      receipt: receipt && plain(receipt, 'receipt'),
    },
    call,
  );
}

/** Names of the options of `extractAdapter` that do not concern its worker. */
const EXTRACT = Object.keys({
  tuned: 1,
  base: 1,
  r: 1,
  targetModules: 1,
  to: 1,
  signal: 1,
  onProgress: 1,
} satisfies Record<Exclude<keyof ExtractOptions, keyof WorkerOptions>, 1>);

/**
 * Extracts the PEFT LoRA adapter closest to the difference between `tuned` and `base`, two models of one shape: the best product of rank `r` for each
 * matrix.
 */
export async function extractAdapter(given: ExtractOptions): Promise<Extraction> {
  const {
    tuned,
    base,
    r,
    targetModules = 'all-linear',
    to,
    signal: ofCall,
    ...rest
  } = optionsOf(given, 'the extraction');
  const signal = signalOf(ofCall, tuned, base);
  const [call, , factors] = allOf(
    () => workerCall({ ...rest, signal }, EXTRACT),
    () => positiveInteger(r, 'r'),
    () => translate({ r, targetModules }, ofKinds(ADAPTER), ''),
  );
  const options = plain(factors, 'options');
  const extracted: Parameters<typeof reaching<Extraction>>[1] = async (place, moved) => {
    const files = {
      tuned: await toSources(tuned, 'tuned', signal),
      base: await toSources(base, 'base', signal),
    };
    return askOwnWorker('files.extract', { ...files, options, ...place }, call, moved);
  };
  return to === undefined ? extracted({ container: 'files' }, {}) : reaching(to, extracted, 'to');
}
