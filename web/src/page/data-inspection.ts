/** Reports what a run would learn from data, without training. */
import type { WorkerCall } from './call.js';
import { allOf, naturalNumber } from './checks.js';
import { beginningOf, toData, withWeights } from './data-inputs.js';
import type { DataInput } from './data-inputs.js';
import { optionsOf } from './given.js';
import { checkModel } from './model.js';
import type { Model } from './model.js';
import { trainSettings } from './options.js';
import type { TrainOptions } from './options.js';
import { askOwnWorker, workerCall } from './own-worker.js';
import { signalOf } from './request-inputs.js';
import { plain } from '../protocol/plain.js';
import type { DataPreview, DataReport, FileSummary } from '../protocol/reports.js';
import { settingsOf } from './settings.js';
import type { SettingsInUse } from './settings.js';

/** Options of `inspectData`: the settings of a run, which determine how the data are read. */
export interface DataOptions extends WorkerCall, TrainOptions {
  /**
   * The model that is to learn the data, with its tokenizer, chat template and context length. Without a model, only the forms and rows are known.
   */
  model?: Model | undefined;
  /** Validation data, as a run takes them. */
  validationData?: DataInput | undefined;
  /** Number of examples that are shown token by token. Default: 3. */
  show?: number | undefined;
  /** Number of bytes of a File or Blob to read and report on: a quick preview of a large file. Default: all. */
  bytes?: number | undefined;
}

/** The examples that a run would learn from data, and its settings. */
export interface DataInspection {
  /** Report on the data. */
  report: DataReport;
  /** The first examples, token by token. */
  preview: DataPreview;
  /**
   * The settings that the run would have. `chosen` is empty if a learning rate is given, since nothing is chosen then, and if only the beginning of a
   * file is read.
   */
  settings: SettingsInUse;
}

/** Names of the options of `inspectData` that are no settings. */
const LOOK = Object.keys({
  model: 1,
  validationData: 1,
  show: 1,
  bytes: 1,
  signal: 1,
  onProgress: 1,
  workerUrl: 1,
  wasmUrl: 1,
  wasmBinary: 1,
  worker: 1,
} satisfies Record<Exclude<keyof DataOptions, keyof TrainOptions>, 1>);

/** Reports on data without a model: the form of each file, and its number of rows of each kind. */
export function inspectData(
  data: DataInput,
  options?: DataOptions & { model?: undefined },
): Promise<FileSummary[]>;
/**
 * Reports what a run of the model with these options would learn from the data, with its first examples token by token. Nothing is trained, and no
 * GPU is needed.
 */
export function inspectData(
  data: DataInput,
  options: DataOptions & { model: Model },
): Promise<DataInspection>;
export async function inspectData(
  data: DataInput,
  options: DataOptions = {},
): Promise<FileSummary[] | DataInspection> {
  const {
    model,
    validationData,
    show = 3,
    bytes,
    signal: callSignal,
    onProgress,
    workerUrl,
    wasmUrl,
    wasmBinary,
    worker,
    ...settings
  } = optionsOf(options, 'the inspection');
  const signal = signalOf(callSignal, data, validationData);
  const [, , checked, call] = allOf(
    () => model === undefined || checkModel(model),
    () => naturalNumber(show, 'show'),
    () => trainSettings(settings, LOOK),
    () => workerCall({ signal, onProgress, workerUrl, wasmUrl, wasmBinary, worker }),
  );
  const { read, partial } = beginningOf(data, bytes);
  const { spec, weights } = await toData(read, validationData, signal);
  const config = plain(withWeights(checked.config, weights), 'options');
  if (model) {
    const ask = { data: spec, config, partial, show };
    const { report, preview, ...chosen } = await model.call('model.data', ask, {
      signal,
      onProgress,
    });
    return { report, preview, settings: settingsOf(chosen) };
  }
  return askOwnWorker('files.data', { data: spec, config, partial }, call);
}
