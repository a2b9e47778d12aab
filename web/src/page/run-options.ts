/** Arguments and results of a trainer's calls. */
import type { Call } from './call.js';
import type { DataInput } from './data-inputs.js';
import type { FilesInput } from './inputs.js';
import type { Model } from './model.js';
import type { DriveOptions, TrainOptions } from './options.js';
import type { TrainerEvent } from '../protocol/reports.js';
import type { WorkerOptions } from './spawn.js';

export interface CreateOptions extends TrainOptions, DriveOptions, Call {
  /** From `openModel` or `newModel`; the trainer takes it over, unless creation fails. */
  model: Model;
  /** One file, or several; parts of a mixture may have a weight. */
  data: DataInput;
  /** Data that are evaluated, in place of a share of `data`. None */
  validationData?: DataInput;
  /** Name of the run in lists. The data's name */
  label?: string;
  /** Keep the data with the checkpoints (up to 64 MiB), so that the run resumes without it. true */
  keepData?: boolean;
  /** Train even if weights of the files are not finite. What `openModel` was told, or false */
  allowNonFinite?: boolean;
}
export interface ResumeOptions extends WorkerOptions, Call {
  run: string;
  /** The newest whole one */
  generation?: number;
  /** The same data, only if the run does not keep them; or other data with `override: ['data']`, whose order starts from the beginning. */
  data?: DataInput;
  /** The same data that are evaluated, where `data` is given. */
  validationData?: DataInput;
  /** The files beside which an adapter was trained, whatever they are called now; only if they cannot be found again: this page has not had them, and they were no URLs and no handles that may still be read. */
  base?: FilesInput;
  /** Of the base every piece is compared, or, of a large one, only size and header; later checkpoints say so. 'full' */
  verify?: 'full' | 'header';
  /** Changes to the run's options. What differs from the checkpoint is CHECKPOINT_MISMATCH, except what only shapes the rest of a `wsd` or `infinite` schedule and what `override` names. */
  settings?: TrainOptions;
  /** Options that `settings` may change: `'learningRate'`, `'optimizer.weightDecay'`, all of `'optimizer'`, `'data'`, or `'all'`. None */
  override?: readonly string[];
}
export interface Estimate {
  /** Whether `needBytes` fit; `undefined` if the browser does not report its memory. */
  ok: boolean | undefined;
  /** Peak of the bytes in use on the device in a step. */
  needBytes: number;
  /** Half of the memory that the browser reports, if it does. */
  haveBytes: number | undefined;
  /** Bytes at the peak of a step: either `weights`, or a `base` with its `adapter`; `activations` is what is needed in addition to all gradients, which replace activations as they are made. */
  parts: { base: number; weights: number; adapter: number; grads: number; optimizer: number; activations: number };
}
/** One finished step. */
export type StepEvent = Extract<TrainerEvent, { type: 'step' }>;
export type SaveOptions = Call;
