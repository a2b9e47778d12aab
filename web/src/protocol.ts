/**
 * The waist: what page and worker say to each other. Both sides import this file, it imports neither.
 * Tags are noun.verb. Every request has an id and exactly one reply; events have no id.
 */
import { ERROR_CODES } from './errors.js';
import { anything, blob, buffer, count, flag, listOf, nothing, nullable, number, oneOf, optional, record, text, variant } from './shape.js';
import type { Of, Shape } from './shape.js';

/** Raised whenever a message changes its form. */
export const PROTOCOL = 1;

const errorData = record({
  code: oneOf(...ERROR_CODES),
  message: text,
  detail: record({
    code: optional(text),
    path: optional(text),
    refusal: anything,
    need: optional(number),
    have: optional(number),
    reason: optional(text),
    step: optional(number),
    tensor: optional(text),
  }),
  cause: optional(text),
});

/** How far a long call has got. Totals are known first. */
const progress = record({
  phase: oneOf('download', 'read', 'verify', 'upload', 'compile', 'save', 'export', 'import', 'ready'),
  file: optional(text),
  loaded: number,
  total: number,
  fraction: number,
});
export type Progress = Of<typeof progress>;

const sourceSpec = variant('kind', {
  blob: { name: text, blob },
  bytes: { name: text, bytes: buffer },
  url: {
    name: text,
    url: text,
    headers: listOf(listOf(text)),
    credentials: oneOf('omit', 'same-origin', 'include'),
  },
});
export type SourceSpec = Of<typeof sourceSpec>;

const modelInfo = record({
  architecture: text,
  parameters: count,
  tensors: listOf(record({ name: text, dtype: text, shape: listOf(count) })),
  config: anything,
  vocabSize: count,
  tokenizer: nullable(record({ kind: text, eos: listOf(count), hasChatTemplate: flag })),
  sourceFormat: text,
});
export type ModelInfo = Of<typeof modelInfo>;

const estimate = record({
  needBytes: number,
  parts: record({ weights: number, grads: number, optimizer: number, activations: number }),
});

const sessionInfo = record({
  run: text,
  adapter: text,
  completedSteps: count,
  totalSteps: count,
  config: anything,
  model: modelInfo,
  dataTokens: count,
  gpuBytes: optional(number),
  /** Tensors that APOLLO leaves to AdamW: those of one dimension, and those whose shorter side is at most the rank. */
  fallbacks: listOf(text),
});
export type SessionInfo = Of<typeof sessionInfo>;

const evalReport = record({ loss: number, perplexity: number, tokens: count });
export type EvalReport = Of<typeof evalReport>;

/** Where the GPU's time of a step goes: means over the steps that were timed. */
const profile = record({
  /** Steps that were timed. */
  steps: count,
  /** The device's timestamps, or the host's clock around each kernel. */
  timing: oneOf('device', 'system'),
  /** Milliseconds of all kernels in a step. */
  ms: number,
  /** Launches of tabtune's own kernels in a step. */
  dispatches: number,
  /** Launches in all steps without a time: shorter than the tick of the GPU's clock. */
  unmeasured: count,
  /** Dearest first; a kernel that Burn generated is `Burn: ` and its type. */
  kernels: listOf(record({ kernel: text, launches: number, ms: number, share: number })),
});
export type Profile = Of<typeof profile>;

const token = record({
  id: count,
  text,
  logprob: number,
  top: listOf(record({ id: count, text, prob: number })),
});
export type SampledToken = Of<typeof token>;

const checkpointInfo = record({
  run: text,
  generation: count,
  step: count,
  totalSteps: count,
  loss: optional(number),
  bytes: count,
  savedAt: number,
  label: text,
  dataName: text,
  hasData: flag,
  /** Marked by `keep`: retention never takes it. */
  kept: flag,
  validationLoss: optional(number),
  /** Where it lies: the database, or only in its second home. */
  home: oneOf('indexeddb', 'opfs'),
  /** Why it cannot be read, as a dotted word. */
  fault: optional(text),
});
export type CheckpointInfo = Of<typeof checkpointInfo>;

const namedFile = record({ name: text, blob });
export type NamedFile = Of<typeof namedFile>;

/** What is kept of a run beside its checkpoints, to draw its curves again. */
const historyFields = {
  step: { step: count, loss: number, gradNorm: number, learningRate: number, tokens: count, secs: number },
  sample: { step: count, prompt: text, text },
  eval: { step: count, loss: number, perplexity: number, tokens: count },
};
export const historyEntry = variant('type', historyFields);
export type HistoryEntry = Of<typeof historyEntry>;

/** What `run` yields and the trainer dispatches. */
const trainerEvent = variant('type', {
  ...historyFields,
  checkpoint: { step: count, generation: count, bytes: count, secs: number },
  warning: { step: count, code: text, message: text },
  state: { state: oneOf('ready', 'running', 'paused', 'stopped', 'done', 'recovering', 'failed'), step: count },
  progress: { phase: oneOf('download', 'read', 'verify', 'upload', 'compile', 'ready'), file: optional(text), loaded: number, total: number, fraction: number },
});
export type TrainerEvent = Of<typeof trainerEvent>;
export type TrainerState = Extract<TrainerEvent, { type: 'state' }>['state'];

/** How the worker drives the loop; none of it changes what a step computes. */
export const driverShape = record({
  logEvery: count,
  evalEvery: count,
  evalBatches: count,
  saveEvery: count,
  saveTotalLimit: count,
  sampleEvery: count,
  samplePrompt: text,
  sample: text,
  onNonFinite: oneOf('stop', 'skip'),
});
export type Driver = Of<typeof driverShape>;

const which = record({ run: text, generation: optional(count) });

/** Every request: what is asked, what is answered. */
export const REQUESTS = {
  'worker.hello': {
    ask: record({ protocol: count, version: text, wasmHash: text, wasmUrl: optional(text), wasmBinary: optional(buffer) }),
    reply: record({ protocol: count, version: text, wasmHash: text }),
  },
  'model.open': { ask: record({ sources: listOf(sourceSpec) }), reply: modelInfo },
  'model.create': { ask: record({ config: text, tokenizer: nullable(sourceSpec), data: sourceSpec }), reply: modelInfo },
  'model.tokenize': { ask: record({ text }), reply: listOf(count) },
  'model.estimate': { ask: record({ config: text }), reply: estimate },
  'model.preview': { ask: record({ config: text, steps: count }), reply: listOf(number) },
  'trainer.create': {
    ask: record({ run: text, label: text, config: text, driver: driverShape, data: sourceSpec, keepData: flag }),
    reply: sessionInfo,
  },
  'trainer.resume': {
    ask: record({ run: text, generation: optional(count), config: optional(text), override: optional(listOf(text)), driver: optional(driverShape), data: optional(sourceSpec) }),
    reply: sessionInfo,
  },
  'trainer.inspect': { ask: nothing, reply: sessionInfo },
  'trainer.evaluate': { ask: record({ maxBatches: optional(count) }), reply: evalReport },
  'trainer.profile': { ask: record({ steps: count }), reply: profile },
  'trainer.sample': { ask: record({ stream: count, prompt: text, options: text }), reply: nothing },
  'loop.run': { ask: record({ maxSteps: optional(count) }), reply: record({ state: oneOf('paused', 'stopped', 'done'), step: count }) },
  'loop.pause': { ask: nothing, reply: nothing },
  'loop.stop': { ask: nothing, reply: nothing },
  'rate.set': { ask: record({ rate: optional(number) }), reply: nothing },
  'schedule.decay': { ask: nothing, reply: nothing },
  'schedule.preview': { ask: record({ steps: count }), reply: listOf(number) },
  'checkpoint.save': { ask: nothing, reply: checkpointInfo },
  'checkpoint.list': { ask: record({ run: optional(text) }), reply: listOf(checkpointInfo) },
  'checkpoint.remove': { ask: which, reply: nothing },
  'checkpoint.export': { ask: which, reply: namedFile },
  'checkpoint.import': { ask: record({ blob }), reply: checkpointInfo },
  'model.export': { ask: record({ format: oneOf('safetensors'), container: oneOf('zip', 'files') }), reply: listOf(namedFile) },
} satisfies Record<string, { ask: Shape<unknown>; reply: Shape<unknown> }>;

export type Tag = keyof typeof REQUESTS;
export type Ask<T extends Tag> = Of<(typeof REQUESTS)[T]['ask']>;
export type Reply<T extends Tag> = Of<(typeof REQUESTS)[T]['reply']>;

export const isTag = (word: string): word is Tag => Object.hasOwn(REQUESTS, word);

/** Page to worker. `ask` is parsed by the request's own shape. */
export const pageMessage = variant('type', {
  request: { id: count, tag: text, ask: anything },
  cancel: { id: count },
});
export type PageMessage = Of<typeof pageMessage>;

/** Worker to page. */
export const workerMessage = variant('type', {
  reply: { id: count, reply: anything },
  error: { id: count, error: errorData },
  progress: { id: count, progress },
  events: { events: listOf(trainerEvent) },
  token: { stream: count, token },
  fatal: { error: errorData },
});
export type WorkerMessage = Of<typeof workerMessage>;
