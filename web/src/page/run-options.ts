/** Arguments and results of a trainer's calls. */
import type { DataInput, Input } from './inputs.js';
import type { Model } from './model.js';
import type { DriveOptions, TrainOptions } from './options.js';
import type { Progress, TrainerEvent } from '../protocol/reports.js';
import type { WorkerOptions } from './spawn.js';

/** Options of every long call. */
export interface Call {
  signal?: AbortSignal;
  onProgress?: (progress: Progress) => void;
}
export interface CreateOptions extends TrainOptions, DriveOptions, Call {
  /** From `openModel` or `newModel`; the trainer takes it over, unless creation fails. */
  model: Model;
  data: DataInput;
  /** Name of the run in lists. The data's name */
  label?: string;
  /** Keep the data with the checkpoints (up to 64 MiB), so that the run resumes without it. true */
  keepData?: boolean;
  /** Train even if weights of the files are not finite. false */
  allowNonFinite?: boolean;
}
export interface ResumeOptions extends WorkerOptions, Call {
  run: string;
  /** The newest whole one */
  generation?: number;
  /** The same data, only if the run does not keep them; or other data with `override: ['data']`, whose order starts from the beginning. */
  data?: DataInput;
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
  /** Bytes at the peak of a step; `activations` is what is needed in addition to all gradients, which replace activations as they are made. */
  parts: { weights: number; grads: number; optimizer: number; activations: number };
}
/** One finished step. */
export type StepEvent = Extract<TrainerEvent, { type: 'step' }>;
/** A folder as transformers loads it, or one GGUF file as llama.cpp does. */
export interface ExportOptions extends Call {
  /** 'safetensors' */
  format?: 'safetensors' | 'gguf';
  /** Type of the matrices of a GGUF file; `'as-base'` is that of the base, and without a base that of the weights. 'as-base' */
  type?: GgufType;
  /** The GGUF files that the model came from: metadata, tokenizer and untrained tensors are kept byte for byte. A new file */
  base?: Input | readonly Input[];
}
export type GgufType = 'as-base' | 'f32' | 'f16' | 'bf16' | 'q8_0' | 'q6_k' | 'q5_1' | 'q5_0' | 'q4_k' | 'q4_k_m' | 'q4_1' | 'q4_0';
export type SaveOptions = Call;
