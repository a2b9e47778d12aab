/** Arguments and results of a trainer's calls. */
import type { Call } from './call.js';
import type { DataInput } from './data-inputs.js';
import type { FilesInput } from './inputs.js';
import type { Model } from './model.js';
import type { DriveOptions, TrainOptions } from './options.js';
import type { WorkerOptions } from './spawn.js';

/** Options of `Trainer.create`. */
export interface CreateOptions extends TrainOptions, DriveOptions, Call {
  /** A model from `openModel` or `newModel`; the trainer takes it over, unless creation fails. */
  model: Model;
  /** Training data: one file or several; parts of a mixture may have a weight. */
  data: DataInput;
  /** Validation data, used in place of a share of `data`. Default: none. */
  validationData?: DataInput | undefined;
  /**
   * State to continue from: the files of a folder or a file with the weights, groups and optimizer state of a run, in any form that tabtune writes.
   * Its groups determine optimizers, rates and schedule. Default: none.
   */
  state?: FilesInput | undefined;
  /** Names of options that differ from the state on purpose, as for `Trainer.resume`. Default: none. */
  override?: readonly string[] | undefined;
  /** Name of the run in lists. Default: the name of the data. */
  label?: string | undefined;
  /**
   * Stores the data with the checkpoints (up to 64 MiB), and the base files of an adapter that have no address (the smallest ones, up to 64 MiB
   * together), so that the run can be resumed without passing them again. Default: true.
   */
  keepData?: boolean | undefined;
  /** Trains even if some weights in the files are not finite. Default: the option passed to `openModel`, or false. */
  allowNonFinite?: boolean | undefined;
}
/** Options of `Trainer.resume`. */
export interface ResumeOptions extends WorkerOptions, Call {
  /** Identifier of the run, from `Trainer.runId` or a list of checkpoints. */
  run: string;
  /** Generation of the checkpoint. Default: the newest complete one. */
  generation?: number | undefined;
  /**
   * The same training data, needed only if the run does not store them; or, with `override: ['data']`, other data, whose order starts from the
   * beginning.
   */
  data?: DataInput | undefined;
  /** The same validation data, if `data` is given. */
  validationData?: DataInput | undefined;
  /**
   * Files of the base model of an adapter, under any names: those that a list of checkpoints names in `needsBase`, or all of them. Needed only if this
   * page has not read them, they are not stored with the run, and they were neither addresses nor handles that may still be read.
   */
  base?: FilesInput | undefined;
  /** Verification of the base: every piece is compared, or, of a large base, only size and header; later checkpoints record this. Default: 'full'. */
  verify?: 'full' | 'header' | undefined;
  /**
   * Changes to the run's options. A difference from the checkpoint is CHECKPOINT_MISMATCH, unless it only shapes the rest of a `wsd` or `infinite`
   * schedule or is named by `override`.
   */
  settings?: Omit<TrainOptions, 'settings'> | undefined;
  /**
   * Names of options that `settings` may change: `'learningRate'`, `'optimizer.weightDecay'`, `'optimizer'` as a whole, `'data'`, or `'all'`.
   * Default: none.
   */
  override?: readonly string[] | undefined;
}
/** Estimated GPU memory of a run. */
export interface Estimate {
  /** True if `needBytes` fit into memory; `undefined` if the browser does not report its memory. */
  ok: boolean | undefined;
  /** Peak number of bytes in use on the device during a step. */
  needBytes: number;
  /** Half of the memory that the browser reports, if it reports any. */
  haveBytes: number | undefined;
  /**
   * Bytes at the peak of a step: either `weights`, or a `base` with its `adapter`; `activations` is the amount needed in addition to all gradients,
   * which replace activations as they are computed.
   */
  parts: {
    base: number;
    weights: number;
    adapter: number;
    grads: number;
    optimizer: number;
    activations: number;
  };
}
/** Options of `save`. */
export type SaveOptions = Call;
/** Options of `dispose`. */
export interface DisposeOptions {
  /** Pauses the run and saves its unsaved steps first, also without `autosave`. Default: false. */
  save?: boolean | undefined;
}
