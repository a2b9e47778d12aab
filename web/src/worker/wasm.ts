/** Loads the wasm module and parses Rust's reports into the types of the protocol. */
import init, * as api from 'tabtune-wasm';

import { fault, toTabtuneError } from '../protocol/errors.js';
import type { TabtuneError } from '../protocol/errors.js';
import { evaluation, gpu, profile, score, step, token, warning } from '../protocol/generated/reports.js';
import { count, listOf, missing, optional, record, text } from '../protocol/parse.js';
import type { Parser } from '../protocol/parse.js';
import {
  coreSession,
  estimate as estimateReport,
  fileReport,
  inspection,
  modelDetails,
  modelInfo,
  namedTensor,
  receipt,
  sampleEnd,
} from '../protocol/reports.js';
import { dataInspection, dataPreview, fileSummaries } from '../protocol/data-report.js';
import { extraction, verification } from '../protocol/written.js';

export {
  ModelHandle,
  Session,
  clearAbort,
  estimate,
  extractAdapter,
  initDevice,
  inspectData,
  inspectFile,
  inspectModel,
  measureGpu,
  previewSchedule,
  requestAbort,
  setPanicHook,
  verifyFiles,
  version,
} from 'tabtune-wasm';
export type { FileStream, JsSource, LoadedModel, TokenStream } from 'tabtune-wasm';

/** Instances whose constructors have run. */
const constructed = new WeakSet<object>();

/** Runs the module's constructors, once: `web/build-wasm.mjs` keeps the linker from calling them on every entry. */
function construct(exports: unknown): void {
  if (typeof exports !== 'object' || exports === null || constructed.has(exports)) return;
  constructed.add(exports);
  const constructors: unknown = Reflect.get(exports, '__wasm_call_ctors');
  if (typeof constructors === 'function') Reflect.apply(constructors, undefined, []);
}

/** Source of the core: a compiled one, its bytes or its address; by default the file next to this script. */
export type CoreSource = WebAssembly.Module | ArrayBuffer | string | undefined;

/** Loads the core once; returns its version, and the module that was compiled, if it was. */
export async function loadWasm(source: CoreSource): Promise<{ version: string; compiled: WebAssembly.Module | undefined }> {
  try {
    construct(await init(source === undefined ? undefined : { module_or_path: source }));
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    throw fault(
      'wasm.load',
      `the WebAssembly module could not be loaded: ${reason}. Check that tabtune_bg.wasm is served and that the Content-Security-Policy has 'wasm-unsafe-eval'.`,
      {},
      thrown,
    );
  }
  return { version: api.version(), compiled: source instanceof WebAssembly.Module ? undefined : api.compiled() };
}

const device = record({ adapter: text, backend: text });
const files = listOf(record({ name: text, bytes: count }));

/** Parses one report of the core; an invalid one is a bug of the package, and is reported as such. */
const report =
  <T>(parser: Parser<T>, name: string) =>
  (value: unknown): T =>
    parser(value, `wasm ${name}`);

export const parsed = {
  advanced: report(record({ completedSteps: count, reports: listOf(step) }), 'Advanced'),
  evaluation: report(evaluation, 'EvalReport'),
  profile: report(profile, 'ProfileReport'),
  gpu: report(gpu, 'GpuReport'),
  estimate: report(estimateReport, 'Estimate'),
  device: report(device, 'DeviceInfo'),
  dataInspection: report(dataInspection, 'DataInspection'),
  dataPreview: report(dataPreview, 'DataPreview'),
  fileSummaries: report(fileSummaries, 'FileSummary'),
  model: report(modelInfo, 'ModelInfo'),
  session: report(coreSession, 'SessionInfo'),
  /** `undefined` after the last token. */
  token: report(optional(token), 'GeneratedToken'),
  score: report(score, 'Score'),
  tokenized: report(record({ ids: listOf(count), warnings: listOf(warning) }), 'tokenize'),
  findings: report(listOf(warning), 'TokenStream.warnings'),
  sampleEnd: report(sampleEnd, 'TokenStream.end'),
  files: report(files, 'FileStream.files'),
  receipt: report(missing(receipt), 'FileStream.receipt'),
  details: report(modelDetails, 'ModelDetails'),
  tensor: report(namedTensor, 'NamedTensor'),
  fileReport: report(fileReport, 'InspectReport'),
  inspection: report(inspection, 'ModelInspection'),
  extraction: report(extraction, 'Extraction'),
  verification: report(verification, 'Verification'),
};

/** Converts a failure of the core; a trap leaves the instance unusable, so it is reported as a crash. */
export function wasmError(thrown: unknown): TabtuneError {
  if (thrown instanceof WebAssembly.RuntimeError) {
    return fault('core.panic', `the training core crashed: ${thrown.message}`, {}, thrown);
  }
  return toTabtuneError(thrown);
}
