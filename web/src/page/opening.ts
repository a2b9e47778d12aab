/** Opens models, from files or with new weights. */
import { allOf, boolean, ifGiven, objectOf, string } from './checks.js';
import type { WorkerCall } from './call.js';
import { modelConfig } from './fresh-model.js';
import type { ModelOfConfig, ModelShape } from './fresh-model.js';
import { optionsOf, ownFields } from './given.js';
import { beginningOf, toData } from './data-inputs.js';
import type { DataInput } from './data-inputs.js';
import { toSource, toSources } from './inputs.js';
import type { FilesInput, Input } from './inputs.js';
import { HUB_OPTIONS, hubOptions, pin } from './names.js';
import type { HubOptions } from './names.js';
import { signalOf } from './request-inputs.js';
import { Model } from './model.js';
import { runSettings } from './options.js';
import type { ReadingOptions } from './options.js';
import type { Open } from './model-worker.js';
import { brandOf } from '../protocol/brand.js';
import { badOption } from '../protocol/errors.js';
import type { Values } from '../protocol/plain.js';
import type { Ask } from '../protocol/protocol.js';
import { importRequest } from './requests.js';
import type { ImportRequest } from './requests.js';
import type { CallOptions } from './rpc.js';
import { workerOptions } from './spawn.js';
import { tokenizerShape } from './tokenizers.js';
import type { TokenizerShape } from './tokenizers.js';
import type { WorkerOptions } from './spawn.js';

/** Options of `openModel`. */
export interface OpenOptions extends WorkerCall, HubOptions {
  /** Selection of tensors to import, and the names they get. Default: everything. */
  request?: ImportRequest | undefined;
  /** Files of a LoRA adapter that is merged into the weights as they are read. */
  mergeAdapter?: FilesInput | undefined;
  /**
   * Takes the embedding, output layer and tokenizer of an adapter whose vocabulary is larger than the model's, because tokens were added before it
   * was trained. Default: false.
   */
  resizeVocabulary?: boolean | undefined;
  /** Files of a LoRA adapter that is kept separate from the weights, to be trained further. */
  adapter?: FilesInput | undefined;
  /** Chat template to use instead of the model's: the text of a Jinja template, or `'chatml'`, for a model that has none. */
  chatTemplate?: string | undefined;
  /** Lets trainers of this model accept weights that are not finite, unless their own option says otherwise. Default: false. */
  allowNonFinite?: boolean | undefined;
}

/** Names of the options of `openModel` that do not concern its worker. */
const OPEN = Object.keys({
  request: 1,
  mergeAdapter: 1,
  resizeVocabulary: 1,
  adapter: 1,
  chatTemplate: 1,
  allowNonFinite: 1,
  ...HUB_OPTIONS,
  signal: 1,
  onProgress: 1,
} satisfies Record<Exclude<keyof OpenOptions, keyof WorkerOptions>, 1>);

/** Time after an abort before an unresponsive core is ended: short, because an open model has no state to lose. */
const GRACE_MILLIS = 100;

/** Splits the options of a call with these inputs, which may have signals of their own; `others` are the names of its other options. */
function split(
  all: WorkerCall,
  others: readonly string[],
  inputs: readonly unknown[],
): { worker: WorkerOptions; call: CallOptions } {
  const { signal, onProgress, ...rest } = ownFields(all);
  return {
    worker: workerOptions(rest, others),
    call: { signal: signalOf(signal, ...inputs), onProgress, graceMillis: GRACE_MILLIS },
  };
}

/** Opens a GGUF file, or the files of one Hugging Face folder: files, their addresses, or the name of a repository, `hf:owner/name`. */
export async function openModel(files: FilesInput, options: OpenOptions = {}): Promise<Model> {
  const {
    request,
    mergeAdapter,
    resizeVocabulary = false,
    adapter,
    chatTemplate,
    allowNonFinite = false,
    hub,
    token,
    quant,
    keepDownloads,
    ...rest
  } = optionsOf(options, 'the opening');
  const [from, { worker, call }] = allOf(
    () => hubOptions({ hub, token, quant, keepDownloads }),
    () => split(rest, OPEN, [files, mergeAdapter, adapter]),
    () => boolean(allowNonFinite, 'allowNonFinite'),
    () => boolean(resizeVocabulary, 'resizeVocabulary'),
    () => ifGiven(chatTemplate, string, 'chatTemplate'),
    () => importRequest(request),
  );
  if (adapter !== undefined && mergeAdapter !== undefined)
    throw badOption('adapter', 'either this or mergeAdapter', 'both');
  if (resizeVocabulary && mergeAdapter === undefined)
    throw badOption('resizeVocabulary', 'this only together with mergeAdapter', 'no mergeAdapter');
  const apart = adapter !== undefined;
  const ask = {
    ...(await openingOf(
      files,
      request,
      adapter ?? mergeAdapter,
      apart ? 'adapter' : 'mergeAdapter',
      call.signal,
      from,
    )),
    apart,
    resizeVocabulary,
    chatTemplate,
  };
  const open: Open = (connection, given = {}) => connection.call('model.open', ask, given);
  const alone = (): unknown => apart && Object.assign(ask, { adapter: [], apart: false });
  const model = await Model.open(worker, open, call, { allowNonFinite, files: ask.sources, alone });
  pin([...ask.sources, ...ask.adapter], model.base);
  return model;
}

/** @internal Returns the request that opens the files. */
export async function openingOf(
  files: FilesInput,
  request: ImportRequest | undefined,
  added: FilesInput | undefined,
  path: string,
  signal: AbortSignal | undefined,
  hub: HubOptions,
): Promise<Omit<Ask<'model.open'>, 'apart' | 'resizeVocabulary' | 'chatTemplate'>> {
  const checked = importRequest(request);
  const ofAdapter = { ...hub, quant: undefined };
  const adapter = added === undefined ? [] : await toSources(added, path, signal, ofAdapter);
  return { request: checked, adapter, sources: await toSources(files, 'files', signal, hub) };
}

/** Options of `newModel`. */
export interface NewModelOptions extends WorkerCall, ReadingOptions {
  /**
   * A tokenizer.json, or the vocabulary to learn from the data, or its size. `<|endoftext|>` ends a text, if it is a special token. Without it, the
   * vocabulary consists of the characters of the data.
   */
  tokenizer?: Input | { train: number | TokenizerShape } | undefined;
  /** Number of bytes of a File or Blob from which the vocabulary is taken: to look at a large file, not to train on it. Default: all. */
  bytes?: number | undefined;
}

/** Names of the options of `newModel` that do not concern its worker. */
const NEW = Object.keys({
  tokenizer: 1,
  bytes: 1,
  form: 1,
  columns: 1,
  onBadRow: 1,
  signal: 1,
  onProgress: 1,
} satisfies Record<Exclude<keyof NewModelOptions, keyof WorkerOptions>, 1>);

/** Returns the core's settings of a vocabulary to learn; undefined for a file. */
function toTrain(tokenizer: NewModelOptions['tokenizer']): Values | undefined {
  if (brandOf(tokenizer) !== 'Object' || !Object.hasOwn(Object(tokenizer) as object, 'train'))
    return undefined;
  const { train, ...others }: { train?: unknown } = ownFields(Object(tokenizer) as object);
  const [other] = Object.keys(others);
  if (other !== undefined) throw badOption(`tokenizer.${other}`, 'train alone', other);
  const path = 'tokenizer.train';
  return typeof train === 'number'
    ? tokenizerShape({ vocabSize: train }, path)
    : tokenizerShape(objectOf(train, path), path);
}

/**
 * Creates a model with new weights: of these sizes, or of a config.json of any family. Without `tokenizer` (a tokenizer.json), its vocabulary
 * consists of the characters in the part of `data` that is learned.
 */
export async function newModel(
  shape: ModelShape | ModelOfConfig,
  data: DataInput,
  options: NewModelOptions = {},
): Promise<Model> {
  const {
    tokenizer: given,
    bytes,
    form,
    columns,
    onBadRow,
    ...rest
  } = optionsOf(options, 'the model');
  const [settings, train, { worker, call }, config] = allOf(
    () => runSettings({ form, columns, onBadRow }),
    () => toTrain(given),
    () => split(rest, NEW, [data, given]),
    () => modelConfig(shape),
  );
  const file = train === undefined ? (given as Input | undefined) : undefined;
  if (file !== undefined && bytes !== undefined)
    throw badOption('bytes', 'this only without a tokenizer', bytes);
  const { read, partial } = beginningOf(data, bytes);
  const { spec } = await toData(read, undefined, call.signal);
  const ids = spec.files.find(({ name }) => name.endsWith('.tokens'));
  if (file === undefined && ids)
    throw badOption(
      'data',
      'a text to take the vocabulary of, or a tokenizer with token ids',
      ids.name,
    );
  const tokenizer =
    file === undefined ? null : await toSource(file, 'tokenizer', 'tokenizer.json', call.signal);
  const ask = { config, tokenizer, train, data: spec, settings, partial };
  const open: Open = (connection, more = {}) => connection.call('model.create', ask, more);
  return Model.open(worker, open, call);
}
