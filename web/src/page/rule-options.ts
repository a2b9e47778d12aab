/** Update rules, parameter groups and schedules of a run. Every option but `type` and `pattern` may be left out; its default ends its line. */

/** Adam with decoupled weight decay (arXiv:1711.05101). */
export interface AdamwOptions {
  type: 'adamw';
  /** Factor of the first moment's average. 0.9 */
  beta1?: number;
  /** Factor of the second moment's average. 0.999 */
  beta2?: number;
  /** Added to √v. 1e-6 */
  eps?: number;
  /** Decoupled: p ← (1 − rate·weightDecay)·p. 0.01 */
  weightDecay?: number;
  /** bf16 only: values are written with stochastic rounding, else to nearest. true */
  stochasticRounding?: boolean;
}

/** Adafactor without a first moment (arXiv:1804.04235): two vectors of state for a matrix. */
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
  /** Smallest scale of `relativeStep`. 1e-3 */
  eps2?: number;
  /** Decoupled. 0.01 */
  weightDecay?: number;
  /** The rate is multiplied by the RMS of the parameter. false */
  relativeStep?: boolean;
  /** bf16 only. true */
  stochasticRounding?: boolean;
}

/** APOLLO and APOLLO-Mini (arXiv:2412.05270). Vectors, and matrices no larger than the rank, go to AdamW. */
export interface ApolloOptions {
  type: 'apollo';
  /** Rank of the projection. Required, 1 if `mini` */
  rank?: number;
  /** One scale for a tensor instead of one for each channel. false */
  mini?: boolean;
  /** The update is multiplied by √scale. 1, 128 if `mini` */
  scale?: number;
  /** √scale stands before the growth limiter. false */
  scaleFront?: boolean;
  /** Steps between new projectors. 200 */
  updateSteps?: number;
  /** Entries of the projector: independent, or in orthonormal columns. 'normal' */
  projector?: 'normal' | 'orthogonal';
  /** 0.9 */
  beta1?: number;
  /** 0.999 */
  beta2?: number;
  /** 1e-6 */
  eps?: number;
  /** Decoupled. 0 */
  weightDecay?: number;
  /** bf16 only. true */
  stochasticRounding?: boolean;
}

/** Stochastic gradient descent. */
export interface SgdOptions {
  type: 'sgd';
  /** 0 */
  momentum?: number;
  /** Needs a momentum. false */
  nesterov?: boolean;
  /** Decoupled. 0 */
  weightDecay?: number;
  /** bf16 only. true */
  stochasticRounding?: boolean;
}

export type OptimizerOptions = AdamwOptions | AdafactorOptions | ApolloOptions | SgdOptions;

/** A whole optimizer, or hyperparameters laid over the run's. */
export type GroupOptimizer = Partial<AdamwOptions> | Partial<AdafactorOptions> | Partial<ApolloOptions> | Partial<SgdOptions>;

/** Parameters by name; the first group whose pattern matches takes one. */
export interface GroupOptions {
  /** Glob over tensor names: `*`, `?`, `{a,b}`. */
  pattern: string;
  /** Of the run's type or without one: keys over the run's. The run's */
  optimizer?: GroupOptimizer;
  /** The optimizer's */
  weightDecay?: number;
  /** Factor of the learning rate. 1 */
  learningRateScale?: number;
  /** No gradient, no state, no update. false */
  frozen?: boolean;
}

/** Warmup stands either here or in `TrainOptions.warmupSteps`. */
interface Warmup {
  /** Steps of linear warmup. 0 */
  warmupSteps?: number;
  /** Step 1 has the rate 0; otherwise peak / warmupSteps. true */
  warmupFromZero?: boolean;
}

export interface ConstantSchedule extends Warmup {
  type: 'constant';
}

interface FallingSchedule extends Warmup {
  /** Where the minimum is reached. The run's `steps` */
  totalSteps?: number;
  /** The last rate. 0 */
  minLearningRate?: number;
}

export interface CosineSchedule extends FallingSchedule {
  type: 'cosine';
}

export interface LinearSchedule extends FallingSchedule {
  type: 'linear';
}

/** Warmup, stable, decay: the peak until a decay starts. */
export interface WsdSchedule extends Warmup {
  type: 'wsd';
  /** Length of the decay. Required once one may start */
  decaySteps?: number;
  /** Where the decay starts. -1: none is planned */
  decayStartStep?: number;
  /** The decay starts now, in a new run or at a resume. false */
  startDecay?: boolean;
  /** Its form. 'harmonic', of which 'rsqrt' is another name */
  decayType?: 'harmonic' | 'rsqrt' | 'exponential' | 'linear' | 'one_minus_sqrt';
  /** The last rate. A tenth of the peak */
  minLearningRate?: number;
}

/** Warmup, cooldown on a cosine, constant rate, annealing. */
export interface InfiniteSchedule extends Warmup {
  type: 'infinite';
  /** Steps from the peak to the constant rate. 0 */
  cooldownSteps?: number;
  /** The constant rate. Required with a cooldown, the peak without */
  constantLearningRate?: number;
  /** Length of the annealing. Required, or `tau`, once one may start */
  annealingSteps?: number;
  /** In place of `annealingSteps`: the length is tau + start. */
  tau?: number;
  /** Where the annealing starts. -1: none is planned */
  annealingStartStep?: number;
  /** The annealing starts now, in a new run or at a resume. false */
  startAnnealing?: boolean;
  /** Its form. 'exponential' */
  annealingType?: 'exponential' | 'harmonic' | 'rsqrt';
  /** The last rate. A tenth of the constant rate */
  minLearningRate?: number;
}

export type ScheduleOptions = ConstantSchedule | CosineSchedule | LinearSchedule | WsdSchedule | InfiniteSchedule;
