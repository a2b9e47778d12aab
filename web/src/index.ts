/** tabtune: train language models in a browser tab. Importing this touches no browser object. */
export { ERROR_CODES, escaped, TabtuneError } from './errors.js';
export type { ErrorCode, ErrorDetail } from './errors.js';
export type { DataInput, Input, RangeReader } from './inputs.js';
export type { RunOptions } from './loop.js';
export { Model, newModel, openModel } from './model.js';
export type { OpenOptions } from './model.js';
export type * from './options.js';
export type * from './rule-options.js';
export type { CheckpointInfo, EvalReport, ModelInfo, NamedFile, Profile, Progress, SampledToken, SessionInfo, TrainerEvent, TrainerState } from './protocol.js';
export { Checkpoints, openSavedRuns, SavedRuns } from './runs.js';
export type { ModelShape } from './scratch.js';
export type { WorkerOptions } from './spawn.js';
export { support } from './support.js';
export type { Support } from './support.js';
export { Trainer, TrainerMessage } from './trainer.js';
export type { CreateOptions, Estimate, ExportOptions, ResumeOptions, StepEvent } from './run-options.js';
export { VERSION } from './build.js';
