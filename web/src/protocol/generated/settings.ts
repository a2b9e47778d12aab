// Made by npm run generate; not for editing.
/** Settings by their names in TypeScript. A default ends its line. */
/** What a step computes, without what has keys of its own. */
export interface RunSettings {
  /** Optimizer steps of the whole run. 100 */
  steps?: number;
  /** Passes over the training data, in place of `steps`, which follow from them when the run begins; null where steps are given. */
  epochs?: number;
  /** Sequences of one micro-batch. 4 */
  batchSize?: number;
  /** Tokens of one sequence. A run on rows for which none is given takes the smallest multiple of 64 that holds 95 % of them. 128 */
  seqLen?: number;
  /** Micro-batches per step. 1 */
  gradientAccumulationSteps?: number;
  /** Peak learning rate, times a group's `learningRateScale`. 0.001 */
  learningRate?: number;
  /** Bound of the global gradient norm; 0 is no clipping. 1 */
  maxGradNorm?: number;
  /** Seed of everything random, at most 2^53 − 1: order of the data, initial weights, rounding, projectors. 0 */
  seed?: number;
  /** Storage of matrices and their moments: 4 bytes, or 2 with bf16. Arithmetic is f32. 'f32' */
  precision?: 'f32' | 'bf16';
  /** Storage of the base's weights under an adapter: as in the file, 2 bytes, or 4. Arithmetic is f32. 'stored' */
  baseStorage?: 'stored' | 'bf16' | 'f32';
  /** Run each block again in the backward pass instead of keeping its activations: less memory, more time. True with an adapter or `blockCoordinate`, unless it is given. false */
  gradientCheckpointing?: boolean;
  /** Update each block as soon as its gradients are complete: least memory. Needs one micro-batch a step and `maxGradNorm` 0. false */
  gradientRelease?: boolean;
  /** Steps whose losses and norms are read together: 1 reads each before the next begins; more let the GPU go on without a wait, and reports come late. Losses and weights do not depend on it. 1 with `gradientRelease`. 1 */
  reportEvery?: number;
  /** A token sees only its own document. Without it a token sees all earlier tokens of its sequence, as GPT-2 was trained. Documents of a text end with the tokenizer's end tokens (eos). false */
  documentMask?: boolean;
  /** Order of the training data: by the seed, another in each epoch; or as it lies in the data, from its first token to its last. 'shuffled' */
  dataOrder?: 'shuffled' | 'sequential';
  /** Share of the data kept for evaluation: of a text its end, of rows those that `validationRows` says. 0 */
  validationFraction?: number;
  /** Rows that are kept for evaluation: random draws them by the seed, last takes those at the end, for rows in an order of time. 'random' */
  validationRows?: 'random' | 'last';
  /** How often the rows of each file of the data come in an epoch, in the order of the files: 2 is twice, 0.5 is another half of them in each epoch. Without numbers, once. [] */
  dataWeights?: number[];
  /** Form of the data files: text, jsonl, json, csv, tsv or tokens; null finds it by their contents. */
  form?: 'text' | 'jsonl' | 'json' | 'csv' | 'tsv' | 'tokens';
  /** A row that cannot be used: stop refuses the data, skip leaves it out. 'stop' */
  onBadRow?: 'stop' | 'skip';
  /** Messages of a chat that are learned: each answer of the assistant, the last one, or all of the text. 'assistant' */
  lossOn?: 'assistant' | 'last' | 'all';
  /** An example that is longer than a sequence: cut leaves out its end, skip all of it, split makes several sequences of a document. 'cut' */
  onLong?: 'cut' | 'skip' | 'split';
  /** Several examples go into one sequence, each of which sees only itself. Rows alone are packed. true */
  packing?: boolean;
  /** Date that chat templates see, as YYYY-MM-DD; the day on which a run begins, if a template asks for it. */
  chatDate?: string;
}

/** Small factors that are trained on a base that does not change: y = x Wᵀ + scale · x Aᵀ Bᵀ with A [r, in] and B [out, r]. The words are PEFT's; `alpha`, `dropout`, `rslora` and `init` are its `"lora_alpha"`, `"lora_dropout"`, `"use_rslora"` and `"init_lora_weights"`. */
export interface AdapterSettings {
  /** Rank of the factors, from 1 to 65,536. 8 */
  r?: number;
  /** The product of the factors is multiplied by alpha / r. 8 */
  alpha?: number;
  /** Modules with factors, matrices inside the blocks: a list of names or of their ends after a dot, or one text, which is `"all-linear"` or a regular expression of whole names. If absent, `"q_proj"` and `"v_proj"`, of GPT-2 `"c_attn"`. */
  targetModules?: string | string[];
  /** Modules that have none although they are targets: a list, or a regular expression of whole names. */
  excludeModules?: string | string[];
  /** Number or numbers of the blocks with factors, all if absent; for targets given as a list, except by a whole name. */
  layersToTransform?: number | number[];
  /** The part of a name, or the parts, that the number of a block follows, as regular expressions; any if absent. */
  layersPattern?: string | string[];
  /** Ranks of some modules: the first key that as a regular expression matches a whole name, or its end after a dot. {} */
  rankPattern?: Record<string, number>;
  /** The same for alpha. The two tables are searched apart from each other. {} */
  alphaPattern?: Record<string, number>;
  /** Share of a target's inputs that the factors do not see in a step: 0 ≤ p < 1. 0 */
  dropout?: number;
  /** Multiply by alpha / √r (rsLoRA, arXiv:2312.03732) in place of alpha / r. false */
  rslora?: boolean;
  /** Modules that are trained in full, by the ends of their names: norms, and an embedding or a head that are not tied. */
  modulesToSave?: string[];
  /** How A starts: true, uniform in ±1/√in, or `"gaussian"`, normal with deviation 1/r. B starts at 0. true */
  init?: true | 'gaussian';
  /** Biases of the base that are trained: none. 'none' */
  bias?: 'none';
}

/** AdamW on a few blocks of the model at a time (BAdam, arXiv:2404.02827; LISA, arXiv:2403.17919): `blocks` train for `interval` steps, then the next; everything else rests, without gradient and state, and the backward pass ends at the lowest block that trains. A block begins each of its turns with new moments. */
export interface BlockCoordinateSettings {
  /** Blocks that train at once, neighbours in the model. Those of which groups freeze everything have no turn. 1 */
  blocks?: number;
  /** Steps until the next blocks train. 50 */
  interval?: number;
  /** Order of the blocks: by the seed, another in each cycle; or from the first, or the last. 'shuffled' */
  order?: 'shuffled' | 'ascending' | 'descending';
  /** The tables of embeddings train in every step; a table that is the head too does so for either. false */
  embedding?: boolean;
  /** The norm before the head trains in every step. false */
  norm?: boolean;
  /** The head trains in every step. false */
  head?: boolean;
}

/** The columns of a row, by the names that tabtune knows. A value is the name of a key, or a pattern with names in braces: `"Question: {question}\nAnswer:"`; `{{` and `}}` are braces. */
export interface ColumnSettings {
  /** Text before the answer, which is read and not learned. */
  prompt?: string;
  /** The answer, which is learned. */
  completion?: string;
  /** A system message before a prompt. */
  system?: string;
  /** A document, all of which is learned. */
  text?: string;
  /** A list of messages. */
  messages?: string;
}

/** Parameters that match `pattern` and how they are treated. First match wins. */
export interface GroupSettings {
  /** Glob over names of tensors: `*` any text, `?` one character, `{a,b}` either. */
  pattern: string;
  /** In place of the optimizer's. */
  weightDecay?: number;
  /** Factor of the learning rate. 1 */
  learningRateScale?: number;
  /** No gradient, no state, no update. false */
  frozen?: boolean;
}

/** How tokens are chosen. Unknown keys are refused. */
export interface SampleOptions {
  /** Maximum number of tokens to add. 100 */
  maxTokens?: number;
  /** Spread of the choice; 0 is greedy: always the likeliest token. 0.8 */
  temperature?: number;
  /** Only the k likeliest tokens; 0 is all. The cut by `topP` comes after it. 0 */
  topK?: number;
  /** Only the likeliest tokens whose probabilities, of those that `topK` leaves, add up to this; 1 is all. 1 */
  topP?: number;
  /** Seed of the choices, at most 2^53 − 1. 0 */
  seed?: number;
  /** Report this many of the likeliest tokens with each token. 0 */
  topLogprobs?: number;
}

/** How a text is scored. Unknown keys are refused. */
export interface ScoreSettings {
  /** Report this many of the likeliest tokens of each position, at most 20. 0 */
  top?: number;
}
