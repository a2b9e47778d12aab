// Made by npm run generate; not for editing.
/** Settings by their names in TypeScript. */
/** What a step computes, without what has keys of its own. */
export interface RunSettings {
  /**
   * Number of optimizer steps of the whole run, including those before a resume; from 1 to 2^53 − 1.
   * @default 100
   */
  steps?: number | undefined;
  /** Number of passes over the training data, above 0 and at most 1,000,000, in place of `steps`: the number of steps is computed when the run begins. Absent if `steps` is given. */
  epochs?: number | undefined;
  /**
   * Number of sequences in one micro-batch, ≥ 1.
   * @default 4
   */
  batchSize?: number | undefined;
  /**
   * Number of tokens in one sequence, ≥ 1. A run on rows that does not set it takes the smallest multiple of 64 that holds 95 % of the examples whole, at most 1024.
   * @default 128
   */
  seqLen?: number | undefined;
  /**
   * Number of micro-batches in a step, ≥ 1; a step has at most 2^28 tokens.
   * @default 1
   */
  gradientAccumulationSteps?: number | undefined;
  /**
   * Peak learning rate, > 0; a group multiplies it by its `learningRateScale`.
   * @default 0.001
   */
  learningRate?: number | undefined;
  /**
   * Maximum global 2-norm of the gradients, to which larger ones are scaled down; 0 disables clipping.
   * @default 1
   */
  maxGradNorm?: number | undefined;
  /**
   * Seed of all random choices, from 0 to 2^53 − 1: order of the data, initial weights, rounding, projectors.
   * @default 0
   */
  seed?: number | undefined;
  /**
   * Storage type of weight matrices and their moments: 4 bytes a value, or 2 with bf16. Arithmetic is f32.
   * @default 'f32'
   */
  precision?: 'f32' | 'bf16' | undefined;
  /**
   * Storage type of the base's weights under an adapter: stored keeps them as in the file, bf16 takes 2 bytes a weight, f32 takes 4. Arithmetic is f32.
   * @default 'stored'
   */
  baseStorage?: 'stored' | 'bf16' | 'f32' | undefined;
  /**
   * Recompute each block in the backward pass instead of keeping its activations: less memory, more time. True by default with an adapter or `blockCoordinate`.
   * @default false
   */
  gradientCheckpointing?: boolean | undefined;
  /**
   * Update each block as soon as its gradients are complete: least memory. Requires `gradientAccumulationSteps` 1, `maxGradNorm` 0 and `reportEvery` 1, and excludes `blockCoordinate`.
   * @default false
   */
  gradientRelease?: boolean | undefined;
  /**
   * Number of steps whose losses and norms are read together, from 1 to 1024: with 1, those of each step are read before the next begins; with more, the GPU does not wait, and reports come late. Losses and weights do not depend on it. Must be 1 with `gradientRelease`.
   * @default 1
   */
  reportEvery?: number | undefined;
  /**
   * Let a token see only its own document; otherwise it sees all earlier tokens of its sequence, as GPT-2 was trained. Documents of a text end with the tokenizer's end tokens (eos).
   * @default false
   */
  documentMask?: boolean | undefined;
  /**
   * Order of the training data: shuffled draws a new order by the seed in each epoch; sequential keeps the order of the data, from its first token to its last.
   * @default 'shuffled'
   */
  dataOrder?: 'shuffled' | 'sequential' | undefined;
  /**
   * Share of the data kept for evaluation, 0 ≤ share < 1: the end of a text, or the rows that `validationRows` selects.
   * @default 0
   */
  validationFraction?: number | undefined;
  /**
   * Rows that are kept for evaluation: random draws them by the seed, last takes those at the end, for rows in order of time.
   * @default 'random'
   */
  validationRows?: 'random' | 'last' | undefined;
  /**
   * Number of times that the rows of each data file come in an epoch, above 0 and at most 1000, in the order of the files: 2 is twice, 0.5 is a newly drawn half of them in each epoch. With an empty list, all rows come once.
   * @default []
   */
  dataWeights?: number[] | undefined;
  /** Form of the data files; if absent, it is detected from their contents. */
  form?: 'text' | 'jsonl' | 'json' | 'csv' | 'tsv' | 'tokens' | undefined;
  /**
   * Treatment of a row that cannot be used: stop refuses the data, skip leaves the row out.
   * @default 'stop'
   */
  onBadRow?: 'stop' | 'skip' | undefined;
  /**
   * Messages of a chat that are learned: each answer of the assistant, the last one, or the whole text.
   * @default 'assistant'
   */
  lossOn?: 'assistant' | 'last' | 'all' | undefined;
  /**
   * Treatment of an example that is longer than a sequence: cut leaves out its end, skip leaves out the example, split divides a document into several sequences and cuts other examples.
   * @default 'cut'
   */
  onLong?: 'cut' | 'skip' | 'split' | undefined;
  /**
   * Put several examples into one sequence, each of which sees only itself. Applies to rows only.
   * @default true
   */
  packing?: boolean | undefined;
  /** Date that chat templates see, as YYYY-MM-DD; by default the day on which the run begins, if a template asks for it. */
  chatDate?: string | undefined;
}

/** Settings of LoRA factors that are trained on a frozen base: y = x Wᵀ + scale · x Aᵀ Bᵀ with A [r, in] and B [out, r]. The names are PEFT's, where `alpha`, `dropout`, `rslora` and `init` are called `"lora_alpha"`, `"lora_dropout"`, `"use_rslora"` and `"init_lora_weights"`. */
export interface AdapterSettings {
  /**
   * Rank of the factors, from 1 to 65,536.
   * @default 8
   */
  r?: number | undefined;
  /**
   * Numerator of the adapter's scale, > 0: the product of the factors is multiplied by alpha / r.
   * @default 8
   */
  alpha?: number | undefined;
  /** Modules that get factors, which are matrices inside the blocks: a list of names, or of their ends after a dot; or one text, which is `"all-linear"` or a regular expression of whole names. If absent, `"q_proj"` and `"v_proj"`; for GPT-2 `"c_attn"`. */
  targetModules?: string | string[] | undefined;
  /** Modules that get no factors although they are targets: a list of names or of their ends, or one regular expression of whole names. */
  excludeModules?: string | string[] | undefined;
  /** Numbers of the blocks that get factors, counted from 0: one number or a list; all blocks if absent. Requires `targetModules` to be a list, whose whole names are exempt. */
  layersToTransform?: number | number[] | undefined;
  /** Regular expression, or a list of them, for the part of a name that precedes the number of a block; any part if absent. Requires `layersToTransform`. */
  layersPattern?: string | string[] | undefined;
  /**
   * Ranks that replace `r` in some modules, from 1 to 65,536. A key is a regular expression that matches a whole name, or its end after a dot; the first key that matches counts.
   * @default {}
   */
  rankPattern?: Record<string, number> | undefined;
  /**
   * Values that replace `alpha` in some modules, with keys as in `rankPattern`. The two tables are searched independently.
   * @default {}
   */
  alphaPattern?: Record<string, number> | undefined;
  /**
   * Dropout probability of the inputs of the factors in training: 0 ≤ p < 1.
   * @default 0
   */
  dropout?: number | undefined;
  /**
   * Scale by alpha / √r (rsLoRA, arXiv:2312.03732) instead of alpha / r.
   * @default false
   */
  rslora?: boolean | undefined;
  /** Modules that are trained in full, given by the ends of their names: norms, and an embedding or a head that is not tied. */
  modulesToSave?: string[] | undefined;
  /**
   * Initial values of A: true for uniform in ±1/√in, `"gaussian"` for normal with standard deviation 1/r. B starts at 0.
   * @default true
   */
  init?: true | 'gaussian' | undefined;
  /**
   * Biases of the base that are trained; none is the only choice.
   * @default 'none'
   */
  bias?: 'none' | undefined;
}

/** AdamW on a few blocks of the model at a time (BAdam, arXiv:2404.02827; LISA, arXiv:2403.17919): `blocks` train for `interval` steps, then the next ones; everything else rests, without gradients and state, and the backward pass ends at the lowest block that trains. A block begins each of its turns with new moments. */
export interface BlockCoordinateSettings {
  /**
   * Number of adjacent blocks that train at a time, ≥ 1. A block that groups freeze entirely has no turn.
   * @default 1
   */
  blocks?: number | undefined;
  /**
   * Number of steps before the next blocks train, ≥ 1.
   * @default 50
   */
  interval?: number | undefined;
  /**
   * Order of the blocks: shuffled draws a new one by the seed in each cycle; ascending begins with the first block, descending with the last.
   * @default 'shuffled'
   */
  order?: 'shuffled' | 'ascending' | 'descending' | undefined;
  /**
   * Train the embedding tables in every step. A table that is also the head trains if either is set.
   * @default false
   */
  embedding?: boolean | undefined;
  /**
   * Train the norm before the head in every step.
   * @default false
   */
  norm?: boolean | undefined;
  /**
   * Train the head in every step.
   * @default false
   */
  head?: boolean | undefined;
}

/** Columns of a row, under tabtune's names. A value is the name of a key, or a pattern with names in braces: `"Question: {question}\nAnswer:"`; `{{` and `}}` are literal braces. */
export interface ColumnSettings {
  /** Text before the answer, which the model reads but does not learn. */
  prompt?: string | undefined;
  /** Answer, which the model learns. */
  completion?: string | undefined;
  /** System message before a prompt. */
  system?: string | undefined;
  /** Document, all of which the model learns. */
  text?: string | undefined;
  /** List of messages. */
  messages?: string | undefined;
}

/** Parameters whose names match `pattern`, and how they are treated. The first group that matches counts. */
export interface GroupSettings {
  /** Glob over tensor names: `*` matches any text, `?` one character, `{a,b}` either text. */
  pattern: string;
  /** Weight decay of the group in place of its optimizer's, ≥ 0. */
  weightDecay?: number | undefined;
  /**
   * Factor of the learning rate, > 0.
   * @default 1
   */
  learningRateScale?: number | undefined;
  /**
   * Keep these parameters unchanged: no gradient, no state, no update.
   * @default false
   */
  frozen?: boolean | undefined;
}

/** Settings of how tokens are chosen. Unknown keys are refused. */
export interface SampleOptions {
  /**
   * Maximum number of tokens to add.
   * @default 100
   */
  maxTokens?: number | undefined;
  /**
   * Spread of the choice. 0 is greedy: always the likeliest token.
   * @default 0.8
   */
  temperature?: number | undefined;
  /**
   * Number of likeliest tokens to choose from; 0 means all. The cut by `topP` comes after it.
   * @default 0
   */
  topK?: number | undefined;
  /**
   * Share of probability to choose from: the likeliest tokens, among those that `topK` leaves, that add up to it; 1 means all.
   * @default 1
   */
  topP?: number | undefined;
  /**
   * Seed of the choices, at most 2^53 − 1.
   * @default 0
   */
  seed?: number | undefined;
  /**
   * Number of likeliest tokens to report with each token.
   * @default 0
   */
  topLogprobs?: number | undefined;
}

/** Settings of how a text is scored. Unknown keys are refused. */
export interface ScoreSettings {
  /**
   * Number of likeliest tokens to report for each position, at most 20.
   * @default 0
   */
  top?: number | undefined;
}
