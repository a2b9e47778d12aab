/** The fake core's models: shapes and plans, no weights. */
import type { JsData, JsSource, Values } from 'tabtune-wasm';
import { called, failed, fake, refuse } from './fake-calls.js';
import { LoadedModel, rowsOf, told } from './fake-tokens.js';
import { exportedAs } from './fake-files.js';
import type { FileStream } from './fake-files.js';

export interface Config {
  steps: number;
  batch_size: number;
  seq_len: number;
  gradient_accumulation_steps: number;
  report_every?: number;
  precision: string;
  learning_rate?: number;
  schedule?: { warmup_steps?: number; decay_start_step?: number };
  optimizer?: { type: string };
  adapter?: object | null;
}

/** Completes settings with the core's defaults. */
export const complete = (given: Values): Config => ({
  ...{
    steps: 100,
    batch_size: 4,
    seq_len: 128,
    gradient_accumulation_steps: 1,
    gradient_release: false,
    gradient_checkpointing: false,
    precision: 'f32',
  },
  ...(given as Partial<Config>),
});

export const choices = [
  { format: 'safetensors', ok: true, bytes: 1_000_002 },
  { format: 'gguf', type: 'as-base', ok: true, bytes: 500_000, lossy: 'groups', needs: 'base' },
  { format: 'json', ok: false, reason: 'more than 64 MiB' },
];

/** Description of every adapter. */
export const FACTORS = {
  r: 8,
  alpha: 16,
  targets: ['model.layers.0.self_attn.q_proj'],
  parameters: 9216,
  bytes: 36_864,
};

/** Returns the number of bytes of all data files. */
export const sizeOf = ({ files, validation }: JsData): number =>
  [...files, ...validation].reduce((sum, { size }) => sum + size, 0);

/** Returns the report on a stream of this many tokens. */
export const reported = (total: number): unknown => ({
  ...{
    files: [{ name: 'text.txt', form: 'text', rows: null }],
    shapes: {},
    rules: {},
    examples: 0,
    validation: 0,
    tokens: { total, learned: total - 1 },
  },
  ...{
    lengths: null,
    seqLen: 128,
    cut: 0,
    skipped: 0,
    windows: 1,
    packedFraction: 1,
    stepsPerEpoch: 1,
    end: [],
    warnings: [],
    digest: '',
  },
});

export class ModelHandle {
  private constructor(
    readonly shape: {
      hidden: number;
      layers: number;
      vocab: number;
      format: string;
      parameters: number;
    },
    readonly config: unknown,
    private readonly opened: object = {},
    /** An adapter that stays separate. */
    private readonly beside: typeof FACTORS | null = null,
  ) {}
  static open(
    files: JsSource[],
    request?: Values,
    adapter: JsSource[] = [],
    apart = false,
    resize = false,
  ): ModelHandle {
    const [first] = files;
    failed('open');
    if (fake.unreadable) return refuse('BAD_MODEL_FILE', 'source.read', 'the file has gone');
    if (!first) return refuse('BAD_MODEL_FILE', 'bundle.empty', 'no files');
    const magic = new TextDecoder('latin1').decode(first.read(0, Math.min(4, first.size)));
    if (magic !== 'GGUF' && !files.some((file) => file.name === 'config.json')) {
      const refusal = { code: 'bundle.unknown', stage: 'open', artifact: first.name };
      return refuse(
        'BAD_MODEL_FILE',
        'bundle.unknown',
        `${first.name}: bundle.unknown, expected a GGUF file or config.json`,
        {
          refusal,
          refusals: [refusal, { ...refusal, code: 'bundle.second' }],
          path: first.name,
          offset: 4,
        },
      );
    }
    return new ModelHandle(
      {
        hidden: 576,
        layers: 30,
        vocab: 49152,
        format: magic === 'GGUF' ? 'gguf' : 'hf-folder',
        parameters: 134_515_008,
      },
      { hidden_size: 576 },
      { request: request, adapter: adapter.map(({ name }) => name), resize },
      apart && adapter.length > 0 ? { ...FACTORS } : null,
    );
  }
  static fromScratch(
    config: Values,
    tokenizer: Uint8Array | undefined,
    data: JsData,
    _settings: Values,
    _partial: boolean,
  ): ModelHandle {
    fake.tokenizer = tokenizer;
    const vocab = new Set(
      data.files.map((file) => new TextDecoder().decode(file.read(0, file.size))).join(''),
    ).size;
    const { hidden_size: hidden, num_hidden_layers: layers } = config as {
      hidden_size: number;
      num_hidden_layers: number;
    };
    return new ModelHandle(
      {
        hidden,
        layers,
        vocab,
        format: 'scratch',
        parameters: vocab * hidden + layers * 12 * hidden * hidden,
      },
      config,
    );
  }
  async inspectData(
    data: JsData,
    config: Values,
    partial: boolean,
    show: number,
  ): Promise<unknown> {
    const text = data.files.map(({ name }) => name).join();
    return {
      report: reported(sizeOf(data)),
      preview: Array.from({ length: show }, () => ({
        row: null,
        segments: [{ text, tokens: [{ id: 1, text }], learned: !partial }],
      })),
      config: Object(config) as object,
      chosen: fake.chosen,
    };
  }
  async rows(data: JsData, config: Values): Promise<unknown> {
    fake.asked.push(config);
    return rowsOf(data);
  }
  info(): unknown {
    const { hidden, layers, vocab, format, parameters } = this.shape;
    const tensors = [{ name: 'model.embed_tokens.weight', dtype: 'F32', shape: [vocab, hidden] }];
    for (let i = 0; i < layers; i++)
      tensors.push({
        name: `model.layers.${i}.mlp.down_proj.weight`,
        dtype: 'F32',
        shape: [hidden, 4 * hidden],
      });
    const tokenizer = {
      kind: format === 'scratch' ? 'characters' : 'byte_pair_encoding',
      eos: [2],
      hasChatTemplate: format !== 'scratch',
    };
    const warnings =
      format === 'gguf'
        ? [
            {
              code: 'model.tensor.extra',
              subject: 'rope_freqs.weight',
              message: 'rope_freqs.weight is not used',
            },
          ]
        : [];
    return {
      architecture: 'llama',
      parameters,
      tensors,
      config: this.config,
      vocabSize: vocab,
      tokenizer,
      sourceFormat: format,
      adapter: this.beside,
      warnings,
    };
  }
  previewSchedule(config: Values, points: number, stride: number): Float64Array {
    return Float64Array.from({ length: points }, (_, i) =>
      planned(complete(config), 1 + i * stride),
    );
  }
  details(): unknown {
    const files = this.shape.format !== 'scratch';
    return {
      exports: choices,
      contract: this.opened,
      receipt: files ? { operation: 'import' } : undefined,
      base: files ? { name: 'model' } : undefined,
    };
  }
  tensor(name: string): unknown {
    if (name !== 'model.norm.weight')
      return refuse('BAD_OPTION', 'plan.tensor.unknown', `no tensor ${name}`);
    return { name, dtype: 'BF16', shape: [2], values: Float32Array.of(0.5, -0.5) };
  }
  async exportModel(options: Values, base: readonly { name: string }[]): Promise<FileStream> {
    await called('export');
    return exportedAs(options, base, new Uint8Array(fake.exportBytes));
  }
  tokenize(text: string): unknown {
    return { ids: Array.from(text, (c) => c.codePointAt(0) ?? 0), warnings: told(text) };
  }
  detokenize(ids: Uint32Array): string {
    return String.fromCodePoint(...ids);
  }
  async load(): Promise<LoadedModel> {
    await called('load');
    fake.loaded += 1;
    return new LoadedModel();
  }
  free(): void {
    return;
  }
}

export function estimate(model: ModelHandle, given: Values): unknown {
  const config = complete(given);
  const n = model.shape.parameters;
  const bytes = config.precision === 'bf16' ? 2 : 4;
  const activations =
    config.batch_size * config.seq_len * model.shape.hidden * model.shape.layers * 40;
  const parts = {
    base: 0,
    weights: n * bytes,
    adapter: 0,
    grads: n * 4,
    optimizer: n * bytes * 2,
    activations,
  };
  return { needBytes: parts.weights + parts.grads + parts.optimizer + parts.activations, parts };
}

export function planned(config: Config, step: number): number {
  const { learning_rate: base = 1e-3, steps, schedule } = config;
  const warmup = schedule?.warmup_steps ?? 0;
  if (step - 1 < warmup) return (base * (step - 1)) / warmup;
  return (
    base *
    (0.05 +
      0.95 * 0.5 * (1 + Math.cos((Math.PI * (step - 1 - warmup)) / Math.max(1, steps - warmup))))
  );
}
