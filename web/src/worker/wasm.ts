/** Loads the wasm module and parses Rust's reports into the types of the protocol. */
import init, * as api from 'tabtune-wasm';

import { fault, toTabtuneError } from '../protocol/errors.js';
import type { TabtuneError } from '../protocol/errors.js';
import { anything, count, listOf, nullable, number, optional, record, text } from '../protocol/parse.js';
import type { Parser } from '../protocol/parse.js';
import { REQUESTS } from '../protocol/protocol.js';

export { ModelHandle, Session, clearAbort, estimate, initDevice, inspectFile, panicForTest, previewSchedule, requestAbort, setPanicHook, version } from 'tabtune-wasm';
export type { FileStream, JsSource, TokenStream } from 'tabtune-wasm';

/** Instances whose constructors have run. */
const constructed = new WeakSet<object>();

/** Runs the module's constructors, once: `crate/build.rs` keeps the linker from calling them on every entry. */
function construct(exports: unknown): void {
  if (typeof exports !== 'object' || exports === null || constructed.has(exports)) return;
  constructed.add(exports);
  const constructors: unknown = Reflect.get(exports, '__wasm_call_ctors');
  if (typeof constructors === 'function') Reflect.apply(constructors, undefined, []);
}

/** Loads the module once. Without `url` or `binary` it is the file beside this script. */
export async function loadWasm(url: string | undefined, binary: ArrayBuffer | undefined): Promise<string> {
  const source = binary ?? url;
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
  return api.version();
}

/** Rust says `grad_norm`, TypeScript `gradNorm`; maps become objects. Values under `config` keep Rust's words. */
function camel(value: unknown): unknown {
  if (value instanceof Map) return camel(Object.fromEntries(value));
  if (Array.isArray(value)) return value.map(camel);
  if (typeof value === 'bigint') return Number(value);
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key.replace(/_([a-z0-9])/g, (_, c: string) => c.toUpperCase()), key === 'config' ? plain(inner) : camel(inner)]),
  );
}

/** Maps as objects, big integers as numbers, keys as they are. */
function plain(value: unknown): unknown {
  if (value instanceof Map) return plain(Object.fromEntries(value));
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === 'bigint') return Number(value);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
}

/** The core has `null` for missing values. */
const missing =
  <T>(inner: Parser<T>): Parser<T | undefined> =>
  (value, path) =>
    value === null || value === undefined ? undefined : inner(value, path);
const finding = record({ code: text, subject: missing(text), message: text });
const stepReport = record({ step: count, loss: number, gradNorm: number, learningRate: number, tokens: count, secs: number });
const rustSession = record({
  completedSteps: count,
  totalSteps: count,
  config: anything,
  model: anything,
  dataTokens: count,
  gpuBytes: missing(number),
  fallbacks: listOf(text),
  warnings: listOf(finding),
  scheduleStart: missing(count),
  manualLearningRate: missing(number),
});
const rustToken = record({ id: count, text, logprob: number, top: optional(listOf(record({ id: count, text, prob: number }))) });
const rustModel = record({
  architecture: text,
  parameters: count,
  tensors: listOf(record({ name: text, dtype: text, shape: listOf(count) })),
  config: anything,
  vocabSize: count,
  tokenizer: anything,
  sourceFormat: text,
  warnings: listOf(finding),
});
const rustTokenizer = nullable(record({ kind: text, eos: listOf(count), hasChatTemplate: anything }));
const deviceInfo = record({ adapter: text, backend: text });

/** Parses one report of the core; an invalid one is a bug of ours, and is reported as such. */
function report<T>(parser: Parser<T>, value: unknown, path: string): T {
  return parser(camel(value), `wasm ${path}`);
}

const lists = (value: unknown): unknown => (ArrayBuffer.isView(value) && !(value instanceof DataView) ? Array.from(value as Uint32Array) : value);

function modelInfoOf(value: unknown) {
  const info = rustModel(camel(value), 'wasm ModelInfo');
  const given: unknown = info.tokenizer ?? null;
  const eos: unknown = given === null ? [] : lists(Reflect.get(Object(given), 'eos'));
  const tokenizer = rustTokenizer(given === null ? null : { ...Object(given), eos }, 'wasm ModelInfo.tokenizer');
  return REQUESTS['model.open'].reply({ ...info, tokenizer: tokenizer && { ...tokenizer, hasChatTemplate: tokenizer.hasChatTemplate === true } }, 'wasm ModelInfo');
}

export const parsed = {
  step: (value: unknown) => report(stepReport, value, 'StepReport'),
  evaluation: (value: unknown) => report(REQUESTS['trainer.evaluate'].reply, value, 'EvalReport'),
  profile: (value: unknown) => report(REQUESTS['trainer.profile'].reply, value, 'ProfileReport'),
  estimate: (value: unknown) => report(REQUESTS['model.estimate'].reply, value, 'Estimate'),
  device: (value: unknown) => report(deviceInfo, value, 'DeviceInfo'),
  model: modelInfoOf,
  session: (value: unknown) => {
    const info = report(rustSession, value, 'SessionInfo');
    return { ...info, model: modelInfoOf(info.model) };
  },
  token: (value: unknown) => {
    if (value === undefined || value === null) return undefined;
    const token = report(rustToken, value, 'GeneratedToken');
    return { ...token, top: token.top ?? [] };
  },
  files: (value: unknown) => report(listOf(record({ name: text, bytes: count })), value, 'FileStream.files'),
};

/** A failure of the core; a trap leaves the instance unusable, so it is named as the crash it is. */
export function wasmError(thrown: unknown): TabtuneError {
  if (thrown instanceof WebAssembly.RuntimeError) {
    return fault('core.panic', `the training core crashed: ${thrown.message}`, {}, thrown);
  }
  return toTabtuneError(thrown);
}
