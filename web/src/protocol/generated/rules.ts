// Made by npm run generate; not for editing.
/** Settings by their names in TypeScript. A default ends its line. */
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
  /** Rank of the projection. If absent, a quarter of a matrix's shorter side, at most 128; 1 with `mini`. */
  rank?: number;
  /** The update is multiplied by √scale. `"auto"` is the shorter side over the rank, with which learning rates are those of AdamW. 'auto' */
  scale?: number | 'auto';
  /** √scale is applied before the growth limiter. false */
  scaleFront?: boolean;
  /** Growth of an update's norm from one step to the next, at most; null is no limit. 1.01 */
  growthLimit?: number | null;
  /** Matrices that are projected: those of attention and MLP, or embeddings and head too. AdamW moves the rest, with these betas, eps and decay. Of a model that is not tabtune's own all are. 'blocks' */
  projected?: 'blocks' | 'all';
  /** Factor of the learning rate of what AdamW moves. 1 */
  adamwLearningRateScale?: number;
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
  /** Steps after which the minimum is reached, the run's `steps` if absent: the last of them is one step of the curve above it. 0 */
  totalSteps?: number;
  /** The rate after `totalSteps`. 0 */
  minLearningRate?: number;
}

/** From B to the minimum on a line. */
export interface LinearSchedule {
  type: 'linear';
  /** Steps of linear warmup. 0 */
  warmupSteps?: number;
  /** Step 1 has the rate 0; otherwise B / warmupSteps. true */
  warmupFromZero?: boolean;
  /** Steps after which the minimum is reached, the run's `steps` if absent: the last of them is one step of the curve above it. 0 */
  totalSteps?: number;
  /** The rate after `totalSteps`. 0 */
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
  /** The rate after the decay, whose last step is one step of the curve above it; a tenth of B if absent. */
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
  /** The rate after the annealing, whose last step is one step of the curve above it; a tenth of the constant rate if absent. */
  minLearningRate?: number;
}

export type OptimizerOptions = AdamwOptions | AdafactorOptions | ApolloOptions | SgdOptions;

export type ScheduleOptions = ConstantSchedule | CosineSchedule | LinearSchedule | WsdSchedule | InfiniteSchedule;
