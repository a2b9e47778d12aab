/** Opens models: of files, or with fresh weights. */
import { truth } from './checks.js';
import type { WorkerCall } from './call.js';
import { modelJson } from './fresh-model.js';
import type { ModelShape } from './fresh-model.js';
import { optionsOf, own } from './given.js';
import { beginningOf, toData } from './data-inputs.js';
import type { DataInput } from './data-inputs.js';
import { toSource, toSources } from './inputs.js';
import type { FilesInput, Input } from './inputs.js';
import { Model } from './model.js';
import { trainSettings } from './options.js';
import type { TrainOptions } from './options.js';
import type { Open } from './model.js';
import { badOption } from '../protocol/errors.js';
import type { Ask } from '../protocol/protocol.js';
import { requestJson } from './requests.js';
import type { ImportRequest } from './requests.js';
import type { CallOptions } from './rpc.js';
import { workerOptions } from './spawn.js';
import type { WorkerOptions } from './spawn.js';

export interface OpenOptions extends WorkerCall {
  /** What of the files is taken, and under which names. Everything */
  request?: ImportRequest;
  /** The files of a LoRA adapter, whose product is added to the weights as they are read. None */
  mergeAdapter?: FilesInput;
  /** The adapter's embedding and head, of more rows than the model's, take their place, and so does its tokenizer: tokens were added before it was trained. false */
  resizeVocabulary?: boolean;
  /** The files of a LoRA adapter that stays beside the weights, to be trained on. None */
  adapter?: FilesInput;
  /** What a trainer of this model does if weights are not finite, unless it is told itself. false */
  allowNonFinite?: boolean;
}

/** An open model has no state to lose, so a core that does not answer an abort is ended soon. */
const GRACE_MILLIS = 100;

function split(all: WorkerCall): { worker: WorkerOptions; call: CallOptions } {
  const { signal, onProgress, ...rest } = own(all);
  return { worker: workerOptions(own(rest)), call: { signal, onProgress, graceMillis: GRACE_MILLIS } };
}

/** Opens a GGUF file, or the files of one Hugging Face folder, by their names. */
export async function openModel(files: FilesInput, options: OpenOptions = {}): Promise<Model> {
  const { request, mergeAdapter, resizeVocabulary = false, adapter, allowNonFinite = false, ...rest } = optionsOf(options, 'the opening');
  const { worker, call } = split(rest);
  truth(allowNonFinite, 'allowNonFinite');
  truth(resizeVocabulary, 'resizeVocabulary');
  if (adapter !== undefined && mergeAdapter !== undefined) throw badOption('adapter', 'it or mergeAdapter', 'both');
  if (resizeVocabulary && mergeAdapter === undefined) throw badOption('resizeVocabulary', 'it beside mergeAdapter', 'it alone');
  const apart = adapter !== undefined;
  const ask = { ...(await openingOf(files, request, adapter ?? mergeAdapter, apart ? 'adapter' : 'mergeAdapter', call.signal)), apart, resizeVocabulary };
  const open: Open = (connection, given = {}) => connection.call('model.open', ask, given);
  const alone = (): unknown => apart && Object.assign(ask, { adapter: [], apart: false });
  return Model.open(worker, open, call, { allowNonFinite, files: ask.sources, alone });
}

/** @internal What is opened, as the worker is asked for it. */
export async function openingOf(files: FilesInput, request: ImportRequest | undefined, added: FilesInput | undefined, path: string, signal: AbortSignal | undefined): Promise<Omit<Ask<'model.open'>, 'apart' | 'resizeVocabulary'>> {
  const checked = requestJson(request);
  const adapter = added === undefined ? [] : await toSources(added, path, signal);
  return { request: checked, adapter, sources: await toSources(files, 'files', signal) };
}

/** Settings by which data are read. */
export type ReadingOptions = Pick<TrainOptions, 'form' | 'columns' | 'onBadRow'>;

export interface NewModelOptions extends WorkerCall, ReadingOptions {
  /** A tokenizer.json. Without one the vocabulary is the characters of the data. */
  tokenizer?: Input | undefined;
  /** Takes the characters of so many bytes of a File or Blob alone: to look at a large file, not to train on it. All */
  bytes?: number | undefined;
}

/** A model with fresh weights. Without `tokenizer` (a tokenizer.json) its vocabulary is the characters that `data` have to learn from. */
export async function newModel(shape: ModelShape, data: DataInput, options: NewModelOptions = {}): Promise<Model> {
  const { tokenizer: given, bytes, form, columns, onBadRow, ...rest } = optionsOf(options, 'the model');
  const settings = trainSettings({ form, columns, onBadRow }).config;
  const { worker, call } = split(rest);
  const config = modelJson(shape);
  if (given !== undefined && bytes !== undefined) throw badOption('bytes', 'it without a tokenizer', bytes);
  const { read, partial } = beginningOf(data, bytes);
  const { spec } = await toData(read, undefined, call.signal);
  const ids = spec.files.find(({ name }) => name.endsWith('.tokens'));
  if (given === undefined && ids) throw badOption('data', 'a text to take the characters of, or a tokenizer beside token ids', ids.name);
  const tokenizer = given === undefined ? null : await toSource(given, 'tokenizer', 'tokenizer.json', call.signal);
  const open: Open = (connection, more = {}) => connection.call('model.create', { config, tokenizer, data: spec, settings, partial }, more);
  return Model.open(worker, open, call);
}
