/** A stand-in for the wasm core: the same face, arithmetic instead of a model. For tests only; it is never in a build. */
import type { JsSource } from '../src/wasm-api.js';
export type { JsSource } from '../src/wasm-api.js';

const state = { stepMillis: 12, failAt: 0, failWith: undefined as unknown, badBatches: [] as number[], batches: [] as number[], overrides: [] as string[][], checkpointBytes: 20_000_000, loads: 0 };
/** Knobs of the tests: `failAt` throws once at that step, a bad batch throws whenever it is met. `batches` lists those trained on, `overrides` those of each resume. */
export const fake = state;
Reflect.set(globalThis, '__fakeWasm', state);

const wait = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis));
const refuse = (kind: string, code: string, message: string, more: object = {}): never => {
  // The core throws plain objects, and so does its stand-in.
  // eslint-disable-next-line @typescript-eslint/only-throw-error
  throw { kind, code, message, ...more };
};

export default async function init(): Promise<unknown> {
  state.loads += 1;
  return undefined;
}
export const version = (): string => 'fake';
export const initDevice = async (): Promise<unknown> => ({ adapter: 'Fake adapter', backend: 'none', limits: new Map([['max_buffer_size', 1]]) });

interface Config {
  steps: number;
  batch_size?: number;
  seq_len?: number;
  learning_rate?: number;
  schedule?: { warmup_steps?: number };
  optimizer?: { type: string };
}

export class ModelHandle {
  private constructor(
    readonly shape: { hidden: number; layers: number; vocab: number; format: string; parameters: number },
    readonly config: unknown,
  ) {}
  static open(files: JsSource[]): ModelHandle {
    const [first] = files;
    if (!first) return refuse('BAD_MODEL_FILE', 'bundle.empty', 'no files');
    const magic = new TextDecoder('latin1').decode(first.read(0, Math.min(4, first.size)));
    if (magic !== 'GGUF' && !files.some((file) => file.name === 'config.json')) {
      const refusal = { code: 'bundle.unknown', stage: 'open', artifact: first.name };
      return refuse('BAD_MODEL_FILE', 'bundle.unknown', `${first.name}: bundle.unknown, expected a GGUF file or config.json`, { refusal });
    }
    return new ModelHandle({ hidden: 576, layers: 30, vocab: 49152, format: magic === 'GGUF' ? 'gguf' : 'hf-folder', parameters: 134_515_008 }, { hidden_size: 576 });
  }
  static fromScratch(configJson: string, _tokenizer: unknown, text: Uint8Array): ModelHandle {
    const config = JSON.parse(configJson) as { hidden_size: number; num_hidden_layers: number };
    const vocab = new Set(new TextDecoder().decode(text)).size;
    const { hidden_size: hidden, num_hidden_layers: layers } = config;
    return new ModelHandle({ hidden, layers, vocab, format: 'scratch', parameters: vocab * hidden + layers * 12 * hidden * hidden }, config);
  }
  info(): unknown {
    const { hidden, layers, vocab, format, parameters } = this.shape;
    const tensors = [{ name: 'model.embed_tokens.weight', dtype: 'F32', shape: [vocab, hidden] }];
    for (let i = 0; i < layers; i++) tensors.push({ name: `model.layers.${i}.mlp.down_proj.weight`, dtype: 'F32', shape: [hidden, 4 * hidden] });
    const tokenizer = { kind: format === 'scratch' ? 'characters' : 'bpe', eos: new Uint32Array([2]), has_chat_template: format !== 'scratch' };
    return { architecture: 'llama', parameters, tensors, config: this.config, vocab_size: vocab, tokenizer, source_format: format };
  }
  tokenize(text: string): Uint32Array {
    return Uint32Array.from(text, (c) => c.codePointAt(0) ?? 0);
  }
  free(): void {
    return;
  }
}

export function estimate(model: ModelHandle, configJson: string): unknown {
  const config = JSON.parse(configJson) as Config & { precision?: string };
  const n = model.shape.parameters;
  const bytes = config.precision === 'bf16' ? 2 : 4;
  const activations = (config.batch_size ?? 4) * (config.seq_len ?? 128) * model.shape.hidden * model.shape.layers * 40;
  const parts = { weights: n * bytes, grads: n * 4, optimizer: n * bytes * 2, activations };
  return { need_bytes: parts.weights + parts.grads + parts.optimizer + parts.activations, parts };
}

const SAMPLE = 'It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife. ';

function planned(config: Config, step: number): number {
  const { learning_rate: base = 1e-3, steps, schedule } = config;
  const warmup = schedule?.warmup_steps ?? 0;
  if (step - 1 < warmup) return (base * (step - 1)) / warmup;
  return base * (0.05 + 0.95 * 0.5 * (1 + Math.cos((Math.PI * (step - 1 - warmup)) / Math.max(1, steps - warmup))));
}
export const previewSchedule = (configJson: string, n: number): Float64Array =>
  Float64Array.from({ length: n }, (_, i) => planned(JSON.parse(configJson) as Config, i + 1));

export class Session {
  #step: number;
  #batch: number;
  #timed = 0;
  #rate: number | undefined;
  private constructor(
    readonly model: ModelHandle,
    readonly config: Config,
    readonly dataTokens: number,
    step: number,
    batch: number,
  ) {
    this.#step = step;
    this.#batch = batch;
  }
  static async create(model: ModelHandle, data: JsSource, configJson: string): Promise<Session> {
    const config = JSON.parse(configJson) as Config;
    const seqLen = config.seq_len ?? 128;
    if (data.size < seqLen + 1) return refuse('BAD_OPTION', 'data.too-short', `training data too short: need ${seqLen + 1} tokens, have ${data.size}`);
    return new Session(model, config, data.read(0, data.size).byteLength, 0, 0);
  }
  static async resume(files: JsSource[], data: JsSource, changesJson: string | undefined, overrides: string[]): Promise<Session> {
    state.overrides.push(overrides);
    const file = files.find(({ name }) => name === 'checkpoint.json');
    if (!file) return refuse('CHECKPOINT_CORRUPT', 'checkpoint.corrupt', 'checkpoint.json is missing');
    const stored = JSON.parse(new TextDecoder().decode(file.read(0, file.size))) as { step: number; batch: number; config: Config };
    const model = ModelHandle.fromScratch('{"hidden_size":128,"num_hidden_layers":4}', 'characters', data.read(0, data.size));
    const changes = JSON.parse(changesJson ?? '{}') as Config;
    const refused = Object.keys(changes).filter((key) => !overrides.includes(key) && !overrides.includes('all'));
    if (refused.length > 0) return refuse('CHECKPOINT_MISMATCH', 'optim.resume-mismatch', refused.join());
    return new Session(model, { ...stored.config, ...changes }, data.size, stored.step, stored.batch);
  }
  #planned(step: number): number {
    return planned(this.config, step);
  }
  async step(): Promise<unknown> {
    const step = this.#step + 1;
    await wait(state.stepMillis);
    if (state.failAt === step) {
      state.failAt = 0;
      throw state.failWith;
    }
    // A refused step leaves the data order where it is, as in the core.
    if (state.badBatches.includes(this.#batch + 1)) return refuse('NON_FINITE', 'train.non-finite', `step ${step}: loss is NaN; nothing was changed`);
    this.#batch += 1;
    state.batches.push(this.#batch);
    this.#step = step;
    this.#timed += 1;
    const { batch_size: batch = 4, seq_len: seq = 128 } = this.config;
    const loss = 1.35 + 2.9 * Math.exp(-step / 90) + 0.09 * Math.sin(step * 1.7) * Math.cos(step * 0.37);
    return { step, loss, grad_norm: 0.6 + 2 * Math.exp(-step / 60) + 0.1 * Math.sin(step), learning_rate: this.#rate ?? this.#planned(step), tokens: BigInt(batch * seq), secs: state.stepMillis / 1000 };
  }
  skipBatch(): void {
    this.#batch += 1;
  }
  startProfile(): void {
    this.#timed = 0;
  }
  finishProfile(): unknown {
    const kernels = [{ kernel: 'linear_forward', launches: 29, ms: 7.5, share: 0.75 }, { kernel: 'Burn: FullKernel', launches: 2, ms: 2.5, share: 0.25 }];
    return { steps: BigInt(this.#timed), timing: 'device', ms: 10, dispatches: 29, unmeasured: BigInt(0), kernels };
  }
  async evaluate(): Promise<unknown> {
    const loss = 1.45 + 2.9 * Math.exp(-this.#step / 90);
    return { loss, perplexity: Math.exp(loss), tokens: 4096 };
  }
  generate(prompt: string, optionsJson: string): TokenStream {
    const { max_tokens: max } = JSON.parse(optionsJson) as { max_tokens: number };
    return new TokenStream(Math.min(max, 400), prompt.length, this.#step);
  }
  setLearningRate(rate: number | undefined): void {
    this.#rate = rate;
  }
  startDecay(): void {
    return;
  }
  previewSchedule(n: number): Float64Array {
    return Float64Array.from({ length: n }, (_, i) => this.#planned(i + 1));
  }
  info(): unknown {
    return { completed_steps: BigInt(this.#step), total_steps: this.config.steps, config: new Map(Object.entries(this.config)), model: this.model.info(), data_tokens: this.dataTokens, fallbacks: this.config.optimizer?.type === 'apollo' ? ['model.norm.weight'] : [] };
  }
  checkpoint(): FileStream {
    const head = new TextEncoder().encode(JSON.stringify({ step: this.#step, batch: this.#batch, config: this.config }));
    const weights = new Uint8Array(state.checkpointBytes).map((_, i) => (i * 31 + this.#step) & 255);
    return new FileStream([['checkpoint.json', head], ['model.safetensors', weights]]);
  }
  exportModel(): FileStream {
    const weights = new Uint8Array(1_000_000).fill(this.#step & 255);
    return new FileStream([['config.json', new TextEncoder().encode('{}')], ['model.safetensors', weights]]);
  }
  free(): void {
    return;
  }
}

export class TokenStream {
  #at = 0;
  constructor(
    readonly max: number,
    readonly offset: number,
    readonly skill: number,
  ) {}
  async next(): Promise<unknown> {
    if (this.#at >= this.max) return undefined;
    await wait(state.stepMillis / 8);
    const index = this.#at++;
    const clean = ((index * 7919) % 97) / 97 < Math.min(0.97, this.skill / 150);
    const text = clean ? (SAMPLE[index % SAMPLE.length] ?? ' ') : 'etaoin shrdlu'.charAt((index * 31) % 13);
    return { id: text.charCodeAt(0), text, logprob: -0.5, top: [] };
  }
  free(): void {
    return;
  }
}

export class FileStream {
  #at = 0;
  #file = 0;
  constructor(readonly contents: [string, Uint8Array][]) {}
  files(): unknown {
    return this.contents.map(([name, bytes]) => ({ name, bytes: bytes.byteLength }));
  }
  async nextChunk(): Promise<Uint8Array | undefined> {
    const current = this.contents[this.#file]?.[1];
    if (!current) return undefined;
    const chunk = current.subarray(this.#at, this.#at + (8 << 20));
    this.#at += chunk.byteLength;
    if (this.#at >= current.byteLength) {
      this.#at = 0;
      this.#file += 1;
    }
    return chunk;
  }
  free(): void {
    return;
  }
}
