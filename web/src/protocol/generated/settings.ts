// Made by npm run generate; not for editing.
/** Settings by their names in TypeScript. A default ends its line. */
/** What a step computes, without what has keys of its own. */
export interface RunSettings {
  /** Optimizer steps of the whole run. 100 */
  steps?: number;
  /** Sequences of one micro-batch. 4 */
  batchSize?: number;
  /** Tokens of one sequence. 128 */
  seqLen?: number;
  /** Micro-batches per step. 1 */
  gradientAccumulationSteps?: number;
  /** Peak learning rate, times a group's `learningRateScale`. 0.001 */
  learningRate?: number;
  /** Bound of the global gradient norm; 0 is no clipping. 1 */
  maxGradNorm?: number;
  /** Seed of everything random: order of the data, initial weights, rounding, projectors. 0 */
  seed?: number;
  /** Storage of matrices and their moments: 4 bytes, or 2 with bf16. Arithmetic is f32. 'f32' */
  precision?: 'f32' | 'bf16';
  /** Storage of the base's weights under an adapter: as in the file, 2 bytes, or 4. Arithmetic is f32. 'stored' */
  baseStorage?: 'stored' | 'bf16' | 'f32';
  /** Run each block again in the backward pass instead of keeping its activations: less memory, more time. True with an adapter, unless it is given. false */
  gradientCheckpointing?: boolean;
  /** Update each block as soon as its gradients are complete: least memory. Needs one micro-batch a step and `maxGradNorm` 0. false */
  gradientRelease?: boolean;
  /** A token sees only its own document. Without it a token sees all earlier tokens of its sequence, as GPT-2 was trained. Documents of a text end with the tokenizer's end tokens (eos). false */
  documentMask?: boolean;
  /** Order of the training data: by the seed, another in each epoch; or as it lies in the data, from its first token. 'shuffled' */
  dataOrder?: 'shuffled' | 'sequential';
  /** Share of the text kept for evaluation, from its end. 0 */
  validationFraction?: number;
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
  /** Only the k likeliest tokens; 0 is all. 0 */
  topK?: number;
  /** Only the likeliest tokens whose probabilities add up to this; 1 is all. 1 */
  topP?: number;
  /** Seed of the choices. 0 */
  seed?: number;
  /** Report this many of the likeliest tokens with each token. 0 */
  topLogprobs?: number;
}

/** AdamW. */
export interface AdamwOptions {
  type: 'adamw';
  /** Factor of the first moment's average. 0.9 */
  beta1?: number;
  /** Factor of the second moment's average. 0.999 */
  beta2?: number;
  /** Added to √v, which is not bias-corrected there. 1e-6 */
  eps?: number;
  /** Decoupled: p ← (1 − rate · weightDecay) · p. 0.01 */
  weightDecay?: number;
  /** bf16 values are written with stochastic rounding; otherwise to nearest, and small updates are lost. true */
  stochasticRounding?: boolean;
}

/** Adafactor. */
export interface AdafactorOptions {
  type: 'adafactor';
  /** A new statistic has the weight t^decayRate. -0.8 */
  decayRate?: number;
  /** That weight is at least 1 − beta2Cap. 0.999 */
  beta2Cap?: number;
  /** Largest RMS of an update. 1 */
  clipThreshold?: number;
  /** Added to g². 1e-30 */
  eps1?: number;
  /** Smallest scale of `relativeStep`. 0.001 */
  eps2?: number;
  /** Decoupled: p ← (1 − rate · weightDecay) · p. 0.01 */
  weightDecay?: number;
  /** The rate is multiplied by the RMS of the parameter. false */
  relativeStep?: boolean;
  /** bf16 values are written with stochastic rounding; otherwise to nearest, and small updates are lost. true */
  stochasticRounding?: boolean;
}

/** APOLLO. */
export interface ApolloOptions {
  type: 'apollo';
  /** Factor of the first moment's average. 0.9 */
  beta1?: number;
  /** Factor of the second moment's average. 0.999 */
  beta2?: number;
  /** Added to √v, which is not bias-corrected there. 1e-6 */
  eps?: number;
  /** Decoupled: p ← (1 − rate · weightDecay) · p. 0 */
  weightDecay?: number;
  /** APOLLO-Mini: one scale for a tensor instead of one for each channel. false */
  mini?: boolean;
  /** Rank of the projection. Required; 1 with `mini`. */
  rank?: number;
  /** The update is multiplied by √scale: 1, with `mini` 128. */
  scale?: number;
  /** √scale is applied before the growth limiter. false */
  scaleFront?: boolean;
  /** Steps between new projectors. 200 */
  updateSteps?: number;
  /** Entries of the projector: independent, or in orthonormal columns. 'normal' */
  projector?: 'normal' | 'orthogonal';
  /** bf16 values are written with stochastic rounding; otherwise to nearest, and small updates are lost. true */
  stochasticRounding?: boolean;
}

/** SGD. */
export interface SgdOptions {
  type: 'sgd';
  /** Share of the last update that is kept; 0 is none. 0 */
  momentum?: number;
  /** Nesterov's form, which needs a momentum. false */
  nesterov?: boolean;
  /** Decoupled: p ← (1 − rate · weightDecay) · p. 0 */
  weightDecay?: number;
  /** bf16 values are written with stochastic rounding; otherwise to nearest, and small updates are lost. true */
  stochasticRounding?: boolean;
}

/** B throughout, after a warmup. */
export interface ConstantSchedule {
  type: 'constant';
  /** Steps of linear warmup. 0 */
  warmupSteps?: number;
  /** Step 1 has the rate 0; otherwise B / warmupSteps. true */
  warmupFromZero?: boolean;
}

/** From B to the minimum on half a cosine. */
export interface CosineSchedule {
  type: 'cosine';
  /** Steps of linear warmup. 0 */
  warmupSteps?: number;
  /** Step 1 has the rate 0; otherwise B / warmupSteps. true */
  warmupFromZero?: boolean;
  /** Where the minimum is reached; the run's `steps` if absent. 0 */
  totalSteps?: number;
  /** The last rate. 0 */
  minLearningRate?: number;
}

/** From B to the minimum on a line. */
export interface LinearSchedule {
  type: 'linear';
  /** Steps of linear warmup. 0 */
  warmupSteps?: number;
  /** Step 1 has the rate 0; otherwise B / warmupSteps. true */
  warmupFromZero?: boolean;
  /** Where the minimum is reached; the run's `steps` if absent. 0 */
  totalSteps?: number;
  /** The last rate. 0 */
  minLearningRate?: number;
}

/** Warmup, stable, decay: B until a decay starts. */
export interface WsdSchedule {
  type: 'wsd';
  /** Steps of linear warmup. 0 */
  warmupSteps?: number;
  /** Step 1 has the rate 0; otherwise B / warmupSteps. true */
  warmupFromZero?: boolean;
  /** Length of the decay; required once one may start. 0 */
  decaySteps?: number;
  /** Step after which the decay starts; −1 is not planned. -1 */
  decayStartStep?: number;
  /** The decay starts now, in a new run or at a resume. false */
  startDecay?: boolean;
  /** Its form. `rsqrt` is another name of `harmonic`. 'harmonic' */
  decayType?: 'harmonic' | 'rsqrt' | 'exponential' | 'linear' | 'one_minus_sqrt';
  /** The last rate; a tenth of B if absent. */
  minLearningRate?: number;
}

/** Warmup, cooldown on a cosine, constant, annealing. */
export interface InfiniteSchedule {
  type: 'infinite';
  /** Steps of linear warmup. 0 */
  warmupSteps?: number;
  /** Step 1 has the rate 0; otherwise B / warmupSteps. true */
  warmupFromZero?: boolean;
  /** Steps from B to the constant rate. 0 */
  cooldownSteps?: number;
  /** The constant rate. Required with a cooldown; B without. */
  constantLearningRate?: number;
  /** Length of the annealing; required, or `tau`, once one may start. 0 */
  annealingSteps?: number;
  /** In place of `annealingSteps`: the length is tau + start. */
  tau?: number;
  /** Step after which the annealing starts; −1 is not planned. -1 */
  annealingStartStep?: number;
  /** The annealing starts now, in a new run or at a resume. false */
  startAnnealing?: boolean;
  /** Its form: `exponential` or `harmonic`. 'exponential' */
  annealingType?: 'harmonic' | 'rsqrt' | 'exponential' | 'linear' | 'one_minus_sqrt';
  /** The last rate; a tenth of the constant rate if absent. */
  minLearningRate?: number;
}

export type OptimizerOptions = AdamwOptions | AdafactorOptions | ApolloOptions | SgdOptions;

export type ScheduleOptions = ConstantSchedule | CosineSchedule | LinearSchedule | WsdSchedule | InfiniteSchedule;
