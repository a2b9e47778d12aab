// Made by npm run generate; not for editing.
/** Settings by their names in TypeScript. */
/** AdamW. */
export interface AdamwOptions {
  /** Selects these settings. */
  type: 'adamw';
  /**
   * Decay factor of the first moment, 0 ≤ β < 1.
   * @default 0.9
   */
  beta1?: number | undefined;
  /**
   * Decay factor of the second moment, 0 ≤ β < 1.
   * @default 0.999
   */
  beta2?: number | undefined;
  /**
   * Added to √v, which is not bias-corrected at that point; ≥ 1.2e-38.
   * @default 1e-6
   */
  eps?: number | undefined;
  /**
   * Decoupled weight decay, ≥ 0: p ← (1 − rate · weightDecay) · p.
   * @default 0.01
   */
  weightDecay?: number | undefined;
  /**
   * Write bf16 values with stochastic rounding; false rounds to nearest, which loses small updates.
   * @default true
   */
  stochasticRounding?: boolean | undefined;
}

/** Adafactor. */
export interface AdafactorOptions {
  /** Selects these settings. */
  type: 'adafactor';
  /**
   * Exponent, < 0: in step t a new statistic of g² has the weight t^decayRate.
   * @default -0.8
   */
  decayRate?: number | undefined;
  /**
   * Maximum share of the old statistic, 0 ≤ β < 1: a new one has at least the weight 1 − beta2Cap.
   * @default 0.999
   */
  beta2Cap?: number | undefined;
  /**
   * Maximum RMS of an update before the learning rate, > 0; a larger update is scaled down.
   * @default 1
   */
  clipThreshold?: number | undefined;
  /**
   * Added to g²; ≥ 1e-30.
   * @default 1e-30
   */
  eps1?: number | undefined;
  /**
   * Minimum RMS of a parameter that `relativeStep` uses, > 0.
   * @default 0.001
   */
  eps2?: number | undefined;
  /**
   * Decoupled weight decay, ≥ 0: p ← (1 − rate · weightDecay) · p.
   * @default 0.01
   */
  weightDecay?: number | undefined;
  /**
   * Multiply the learning rate by the RMS of the parameter, which is at least `eps2`.
   * @default false
   */
  relativeStep?: boolean | undefined;
  /**
   * Write bf16 values with stochastic rounding; false rounds to nearest, which loses small updates.
   * @default true
   */
  stochasticRounding?: boolean | undefined;
}

/** APOLLO. */
export interface ApolloOptions {
  /** Selects these settings. */
  type: 'apollo';
  /**
   * Decay factor of the first moment, 0 ≤ β < 1.
   * @default 0.9
   */
  beta1?: number | undefined;
  /**
   * Decay factor of the second moment, 0 ≤ β < 1.
   * @default 0.999
   */
  beta2?: number | undefined;
  /**
   * Added to √v, which is not bias-corrected at that point; ≥ 1.2e-38.
   * @default 1e-6
   */
  eps?: number | undefined;
  /**
   * Decoupled weight decay, ≥ 0: p ← (1 − rate · weightDecay) · p.
   * @default 0
   */
  weightDecay?: number | undefined;
  /**
   * Use one scale for a whole tensor instead of one for each channel (APOLLO-Mini).
   * @default false
   */
  mini?: boolean | undefined;
  /** Rank of the projection, ≥ 1. If absent, a quarter of a matrix's shorter side, at most 128; 1 with `mini`. */
  rank?: number | undefined;
  /**
   * Square of a factor of the update, > 0: updates are multiplied by √scale. `"auto"` is the shorter side divided by the rank, which makes learning rates those of AdamW.
   * @default 'auto'
   */
  scale?: number | 'auto' | undefined;
  /**
   * Apply √scale before the growth limiter instead of after it.
   * @default false
   */
  scaleFront?: boolean | undefined;
  /**
   * Maximum growth of an update's norm from one step to the next, as a factor > 1; null disables the limit.
   * @default 1.01
   */
  growthLimit?: number | null | undefined;
  /**
   * Matrices that are projected: blocks takes those of attention and MLP, all takes embeddings and head too. AdamW updates the rest, with these betas, eps and weight decay. In a model that is not tabtune's own, all matrices are projected.
   * @default 'blocks'
   */
  projected?: 'blocks' | 'all' | undefined;
  /**
   * Factor of the learning rate for parameters that AdamW updates, > 0.
   * @default 1
   */
  adamwLearningRateScale?: number | undefined;
  /**
   * Number of steps after which new projectors are drawn, ≥ 1.
   * @default 200
   */
  updateSteps?: number | undefined;
  /**
   * Random matrix of the projection: normal has independent entries, orthogonal has orthonormal columns.
   * @default 'normal'
   */
  projector?: 'normal' | 'orthogonal' | undefined;
  /**
   * Write bf16 values with stochastic rounding; false rounds to nearest, which loses small updates.
   * @default true
   */
  stochasticRounding?: boolean | undefined;
}

/** SGD. */
export interface SgdOptions {
  /** Selects these settings. */
  type: 'sgd';
  /**
   * Momentum μ, 0 ≤ μ < 1: share of the last update that is kept; 0 disables it.
   * @default 0
   */
  momentum?: number | undefined;
  /**
   * Use Nesterov's form of momentum; requires `momentum` > 0.
   * @default false
   */
  nesterov?: boolean | undefined;
  /**
   * Decoupled weight decay, ≥ 0: p ← (1 − rate · weightDecay) · p.
   * @default 0
   */
  weightDecay?: number | undefined;
  /**
   * Write bf16 values with stochastic rounding; false rounds to nearest, which loses small updates.
   * @default true
   */
  stochasticRounding?: boolean | undefined;
}

/** The peak rate B after a warmup. */
export interface ConstantSchedule {
  /** Selects these settings. */
  type: 'constant';
  /**
   * Number of steps of linear warmup.
   * @default 0
   */
  warmupSteps?: number | undefined;
  /**
   * Start the warmup at 0: step 1 has the rate 0, otherwise the peak rate divided by `warmupSteps`.
   * @default true
   */
  warmupFromZero?: boolean | undefined;
}

/** From B to the minimum along half a cosine. */
export interface CosineSchedule {
  /** Selects these settings. */
  type: 'cosine';
  /**
   * Number of steps of linear warmup.
   * @default 0
   */
  warmupSteps?: number | undefined;
  /**
   * Start the warmup at 0: step 1 has the rate 0, otherwise the peak rate divided by `warmupSteps`.
   * @default true
   */
  warmupFromZero?: boolean | undefined;
  /**
   * Number of steps after which the minimum is reached, above `warmupSteps`; the run's `steps` if absent. The last of them is one step of the curve above the minimum.
   * @default 0
   */
  totalSteps?: number | undefined;
  /**
   * Rate after `totalSteps`, from 0 to the peak rate.
   * @default 0
   */
  minLearningRate?: number | undefined;
}

/** From B to the minimum along a straight line. */
export interface LinearSchedule {
  /** Selects these settings. */
  type: 'linear';
  /**
   * Number of steps of linear warmup.
   * @default 0
   */
  warmupSteps?: number | undefined;
  /**
   * Start the warmup at 0: step 1 has the rate 0, otherwise the peak rate divided by `warmupSteps`.
   * @default true
   */
  warmupFromZero?: boolean | undefined;
  /**
   * Number of steps after which the minimum is reached, above `warmupSteps`; the run's `steps` if absent. The last of them is one step of the curve above the minimum.
   * @default 0
   */
  totalSteps?: number | undefined;
  /**
   * Rate after `totalSteps`, from 0 to the peak rate.
   * @default 0
   */
  minLearningRate?: number | undefined;
}

/** Warmup, stable, decay: the rate stays at B until a decay starts. */
export interface WsdSchedule {
  /** Selects these settings. */
  type: 'wsd';
  /**
   * Number of steps of linear warmup.
   * @default 0
   */
  warmupSteps?: number | undefined;
  /**
   * Start the warmup at 0: step 1 has the rate 0, otherwise the peak rate divided by `warmupSteps`.
   * @default true
   */
  warmupFromZero?: boolean | undefined;
  /**
   * Number of steps of the decay; at least 1 is required where a decay starts.
   * @default 0
   */
  decaySteps?: number | undefined;
  /**
   * Step after which the decay starts, at least `warmupSteps`; −1 plans none.
   * @default -1
   */
  decayStartStep?: number | undefined;
  /**
   * Start the decay at once, in a new run or at a resume.
   * @default false
   */
  startDecay?: boolean | undefined;
  /**
   * Form of the decay. `rsqrt` is another name of `harmonic`.
   * @default 'harmonic'
   */
  decayType?: 'harmonic' | 'rsqrt' | 'exponential' | 'linear' | 'one_minus_sqrt' | undefined;
  /** Rate after the decay, at most the peak rate, and above 0 for harmonic and exponential; a tenth of the peak rate if absent. The last step of the decay is one step of the curve above it. */
  minLearningRate?: number | undefined;
}

/** Warmup, cooldown along half a cosine, constant rate, annealing. */
export interface InfiniteSchedule {
  /** Selects these settings. */
  type: 'infinite';
  /**
   * Number of steps of linear warmup.
   * @default 0
   */
  warmupSteps?: number | undefined;
  /**
   * Start the warmup at 0: step 1 has the rate 0, otherwise the peak rate divided by `warmupSteps`.
   * @default true
   */
  warmupFromZero?: boolean | undefined;
  /**
   * Number of steps from the peak rate to the constant rate.
   * @default 0
   */
  cooldownSteps?: number | undefined;
  /** Constant rate, above 0 and at most the peak rate. Required with a cooldown; without one it is the peak rate. */
  constantLearningRate?: number | undefined;
  /**
   * Number of steps of the annealing; at least 1, or `tau`, is required where an annealing starts.
   * @default 0
   */
  annealingSteps?: number | undefined;
  /** Alternative to `annealingSteps`, > 0, for exponential annealing: it takes tau + start steps, where start is the step after which it starts. */
  tau?: number | undefined;
  /**
   * Step after which the annealing starts, at least `warmupSteps` + `cooldownSteps`; −1 plans none.
   * @default -1
   */
  annealingStartStep?: number | undefined;
  /**
   * Start the annealing at once, in a new run or at a resume.
   * @default false
   */
  startAnnealing?: boolean | undefined;
  /**
   * Form of the annealing: `exponential` or `harmonic`.
   * @default 'exponential'
   */
  annealingType?: 'harmonic' | 'rsqrt' | 'exponential' | 'linear' | 'one_minus_sqrt' | undefined;
  /** Rate after the annealing, above 0 and at most the constant rate; a tenth of the constant rate if absent. The last step of the annealing is one step of the curve above it. */
  minLearningRate?: number | undefined;
}

/** An update rule with its settings. */
export type OptimizerOptions = AdamwOptions | AdafactorOptions | ApolloOptions | SgdOptions;

/** A schedule of the learning rate with its settings. */
export type ScheduleOptions = ConstantSchedule | CosineSchedule | LinearSchedule | WsdSchedule | InfiniteSchedule;
