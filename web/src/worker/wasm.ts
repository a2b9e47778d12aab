/** Loads the wasm module and parses Rust's reports into the types of the protocol. */
import init, * as api from 'tabtune-wasm';

import { sha256 } from './storage/chunks.js';
import { UNBUILT, WASM_HASH } from '../protocol/build.js';
import { fault, messageOf, toTabtuneError } from '../protocol/errors.js';
import type { TabtuneError } from '../protocol/errors.js';
import {
  advanced,
  dataInspection,
  dataPreview,
  deltaReport,
  device,
  estimate as estimateReport,
  evaluation,
  fileInfo,
  fileReport,
  fileSummaries,
  gpu,
  inspection,
  modelDetails,
  modelInfo,
  profile,
  score,
  session,
  token,
  tokenized,
  verification,
  warning,
} from '../protocol/generated/reports.js';
import { WORKER_CODES } from '../protocol/generated/worker-codes.js';
import { documentOf, listOf, optional, record, tableOf, text } from '../protocol/parse.js';
import type { Parser } from '../protocol/parse.js';
import { addCodes, addSentences, sentence, spokenIn } from '../protocol/sentence.js';
import {
  extraction,
  namedTensor,
  planned,
  storedTensor,
  trainedTokenizer,
} from '../protocol/reports.js';
import { sampleEnd } from '../protocol/events.js';
import type { Receipt, Refusal } from '../protocol/reports.js';

export {
  ModelHandle,
  Session,
  clearAbort,
  deriveDelta,
  estimate,
  extractAdapter,
  initDevice,
  inspectData,
  inspectFile,
  inspectModel,
  measureGpu,
  planFiles,
  readTensor,
  requestAbort,
  setPanicHook,
  trainTokenizer,
  useDelta,
  verifyFiles,
  version,
} from 'tabtune-wasm';
export type { FileStream, JsSource, LoadedModel, TokenStream } from 'tabtune-wasm';

addCodes(WORKER_CODES);

/** Instances whose constructors have run. */
const constructed = new WeakSet<object>();

/** Runs the module's constructors, once: `web/build-wasm.mjs` keeps the linker from calling them on every entry. */
function construct(exports: unknown): void {
  if (typeof exports !== 'object' || exports === null || constructed.has(exports)) return;
  constructed.add(exports);
  const constructors: unknown = Reflect.get(exports, '__wasm_call_ctors');
  if (typeof constructors === 'function') Reflect.apply(constructors, undefined, []);
}

/** Section of the core's module that web/core-sentences.mjs has added, and its form. */
const SENTENCES = 'tabtune-sentences';
const sentencesParser = record({ sentences: tableOf(listOf(text)), settings: text });

/** Takes the sentences of errors and warnings that come with a core; a fake core has none. */
function takeSentences(core: WebAssembly.Module): void {
  for (const section of WebAssembly.Module.customSections(core, SENTENCES)) {
    const json: unknown = JSON.parse(new TextDecoder().decode(section));
    const { sentences, settings } = sentencesParser(json, SENTENCES);
    addSentences(sentences, settings);
  }
}

/** Source of the core: a compiled one, its bytes or its address; by default the file next to this script. */
export type CoreSource = WebAssembly.Module | ArrayBuffer | string | undefined;

/** SHA-256 of the core's file, if it was given or loaded; undefined for a file that is none of WebAssembly, which cannot be loaded anyway. */
let sum: Promise<string | undefined> | undefined;

async function sumOf(file: ArrayBuffer): Promise<string | undefined> {
  return new TextDecoder().decode(file.slice(0, 4)) === '\0asm' ? sha256(file) : undefined;
}

/** Throws if the core is not the one that belongs to this script. */
async function checkSum(): Promise<void> {
  const found = await sum?.catch(() => undefined);
  if (found === undefined || found === WASM_HASH || WASM_HASH === UNBUILT) return;
  throw fault(
    'core.build',
    { expected: WASM_HASH.slice(0, 12), found: found.slice(0, 12) },
    { want: WASM_HASH, got: found },
  );
}

/** Requests the core's file. Its sum is computed while it is compiled, which begins with its first bytes. */
async function fetched(address: URL | string): Promise<Response> {
  const response = await fetch(address);
  if (response.ok) sum = response.clone().arrayBuffer().then(sumOf);
  return response;
}

/** Loads the core once; returns its version, and the module that was compiled, if it was. */
export async function loadWasm(
  source: CoreSource,
): Promise<{ version: string; compiled: WebAssembly.Module | undefined }> {
  if (source instanceof ArrayBuffer) sum = sumOf(source);
  try {
    const exports = await init({ module_or_path: source, fetched });
    await checkSum();
    construct(exports);
  } catch (thrown) {
    await checkSum();
    const reason = messageOf(thrown);
    throw fault('wasm.load', { found: reason }, {}, thrown);
  }
  const compiled = api.compiled();
  takeSentences(compiled);
  return {
    version: api.version(),
    compiled: source instanceof WebAssembly.Module ? undefined : compiled,
  };
}

/** Parses one report of the core; an invalid one is a bug of the package, and is reported as such. */
const report =
  <T>(parser: Parser<T>, name: string) =>
  (value: unknown): T =>
    parser(value, `wasm ${name}`);

/** Parses a report with texts that people read. */
const spokenReport =
  <T>(parser: Parser<T>, name: string) =>
  (value: unknown): T =>
    parser(spokenIn(value), `wasm ${name}`);

/** Parses a report with refusals, and adds the sentence of each. */
const refusalReport =
  <T extends { refusals: Omit<Refusal, 'message'>[] }>(parser: Parser<T>, name: string) =>
  (value: unknown): Omit<T, 'refusals'> & { refusals: Refusal[] } => {
    const found = spokenReport(parser, name)(value);
    const refusals = found.refusals.map((refusal) => ({
      ...refusal,
      message: sentence(refusal.code, refusal),
    }));
    return { ...found, refusals };
  };

export const parsed = {
  advanced: report(advanced, 'Advanced'),
  evaluation: report(evaluation, 'EvalReport'),
  profile: report(profile, 'ProfileReport'),
  gpu: report(gpu, 'GpuReport'),
  estimate: spokenReport(estimateReport, 'Estimate'),
  device: report(device, 'DeviceInfo'),
  dataInspection: spokenReport(dataInspection, 'DataInspection'),
  dataPreview: spokenReport(dataPreview, 'DataPreview'),
  fileSummaries: spokenReport(fileSummaries, 'FileSummary'),
  model: spokenReport(modelInfo, 'ModelInfo'),
  session: spokenReport(session, 'SessionInfo'),
  /** `undefined` after the last token. */
  token: report(optional(token), 'GeneratedToken'),
  score: spokenReport(score, 'Score'),
  tokenized: spokenReport(tokenized, 'tokenize'),
  findings: spokenReport(listOf(warning), 'TokenStream.warnings'),
  sampleEnd: spokenReport(sampleEnd, 'TokenStream.end'),
  files: report(listOf(fileInfo), 'FileStream.files'),
  receipt: spokenReport(optional(documentOf<Receipt>()), 'FileStream.receipt'),
  details: spokenReport(modelDetails, 'ModelDetails'),
  tensor: report(namedTensor, 'NamedTensor'),
  storedTensor: report(storedTensor, 'StoredTensor'),
  trainedTokenizer: report(trainedTokenizer, 'Trained'),
  delta: report(deltaReport, 'DeltaReport'),
  planned: refusalReport(planned, 'Planned'),
  fileReport: spokenReport(fileReport, 'InspectReport'),
  inspection: refusalReport(inspection, 'ModelInspection'),
  extraction: spokenReport(extraction, 'Extraction'),
  verification: spokenReport(verification, 'Verification'),
};

/** Converts a failure of the core; a trap leaves the instance unusable, so it is reported as a crash. */
export function wasmError(thrown: unknown): TabtuneError {
  if (thrown instanceof WebAssembly.RuntimeError) {
    return fault('core.panic', { found: thrown.message }, {}, thrown);
  }
  return toTabtuneError(thrown);
}
