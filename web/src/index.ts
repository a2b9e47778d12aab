/** tabtune: train language models in a browser tab. Importing this module uses no browser object. */
import { PAGE_CODES } from './protocol/generated/page-codes.js';
import { addCodes } from './protocol/sentence.js';

export { ERROR_CODES, escaped, TabtuneError } from './protocol/errors.js';
export type { ErrorCode, ErrorDetail } from './protocol/errors.js';
export type { DataFile, DataInput, DataRows, WeightedData } from './page/data-inputs.js';
export type {
  ChatRow,
  CompletionRow,
  DataRow,
  InstructionRow,
  TextRow,
  TokenRow,
} from './page/rows.js';
export { listDownloads, removeDownloads } from './page/downloads.js';
export type { FilesInput, Input, RangeReader } from './page/inputs.js';
export type { Address, AddressInput, HubOptions } from './page/names.js';
export type { RowsOptions, RowsReport, ScoredRow } from './page/row-metrics.js';
export type { AskedOptions } from './page/sampling.js';
export type {
  ChatMessage,
  ChatOptions,
  Scorable,
  ScoredToken,
  ScoreOptions,
  TemplateOptions,
} from './page/asking.js';
export { applyDelta, deriveDelta, removeDelta } from './page/deltas.js';
export type { DeltaOptions, DeriveOptions } from './page/deltas.js';
export { inspectData } from './page/data-inspection.js';
export type { DataInspection, DataOptions } from './page/data-inspection.js';
export { extractAdapter, inspectFiles, readTensor, verifyFiles } from './page/inspections.js';
export type {
  ExtractOptions,
  InspectOptions,
  ReadOptions,
  TensorNames,
  VerifyOptions,
} from './page/inspections.js';
export type { RunOptions } from './page/loop.js';
export { measureGpu } from './page/measuring.js';
export { Model } from './page/model.js';
export { newModel, openModel } from './page/opening.js';
export type { Call, PreviewOptions, WorkerCall } from './page/call.js';
export type {
  ExportOptions,
  Exports,
  ExportTarget,
  GgufType,
  ModelCard,
} from './page/export-options.js';
export type { NewModelOptions, OpenOptions } from './page/opening.js';
export { OPTIMIZER_TYPES } from './page/options.js';
export type * from './page/options.js';
export { EXPORT_FORMATS } from './protocol/generated/exports.js';
export type { ExportFormat, OwnExportOption } from './protocol/generated/exports.js';
export type * from './protocol/generated/documents.js';
export type * from './protocol/generated/rules.js';
export type * from './protocol/generated/settings.js';
export type {
  AdapterInfo,
  BaseInfo,
  CheckpointInfo,
  DataPreview,
  DataReport,
  DataWarning,
  DeltaFiles,
  DeltaReport,
  DownloadInfo,
  EvalReport,
  ExportChoice,
  ExtractReport,
  Extraction,
  FileReport,
  FileSummary,
  FileTensor,
  Finding,
  GpuReport,
  InspectReport,
  Json,
  JsonObject,
  ModelDetails,
  ModelInfo,
  NamedFile,
  NamedTensor,
  NeededFile,
  PlanReport,
  Preview,
  Profile,
  Progress,
  Refusal,
  RowPlace,
  SampledToken,
  Score,
  SessionInfo,
  StepReport,
  StoredTensor,
  TokenizerFacts,
  TrainedTokenizer,
  Verification,
  VerificationCheck,
} from './protocol/reports.js';
export type {
  CheckpointEvent,
  EvalEvent,
  HistoryEntry,
  SampleEnd,
  SampleEvent,
  StateEvent,
  StepEvent,
  TrainerEvent,
  TrainerState,
  WarningEvent,
} from './protocol/events.js';
export { Checkpoints, openSavedRuns, SavedRuns } from './page/runs.js';
export type {
  CheckpointInput,
  CheckpointOptions,
  ForkOptions,
  GenerationOptions,
  KeepOptions,
  RemoveOptions,
  SavedRun,
  SavedRunsOptions,
} from './page/runs.js';
export type { ImportRequest, ImportSelection, KeyRemap } from './page/requests.js';
export type { ModelOfConfig, ModelShape } from './page/fresh-model.js';
export type { TrustedAddress } from './page/addresses.js';
export type { ChosenSetting, SettingsInUse } from './page/settings.js';
export type { WorkerOptions } from './page/spawn.js';
export { support } from './page/support.js';
export type { Support } from './page/support.js';
export { trainTokenizer } from './page/tokenizers.js';
export type { TokenizerOptions, TokenizerShape } from './page/tokenizers.js';
export { TrainerMessage, TrainerTarget } from './page/status.js';
export type { EventType, RunEnd, TrainerListener, TrainerSnapshot } from './page/status.js';
export { Trainer } from './page/trainer.js';
export type {
  CreateOptions,
  DisposeOptions,
  Estimate,
  ResumeOptions,
  SaveOptions,
} from './page/run-options.js';
export { VERSION } from './protocol/build.js';

addCodes(PAGE_CODES);
