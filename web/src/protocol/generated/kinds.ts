// Made by npm run generate; not for editing.
/**
 * Keys of settings and the kinds of their values: a `count` is an integer of at least 0, `counts` and `names` are one value or a list, a `list` has texts, a `table`
 * numbers by names; a list is its words.
 */
export type Kind = 'count' | 'counts' | 'integer' | 'number' | 'number or auto' | 'number or null' | 'boolean' | 'string' | 'names' | 'list' | 'numbers' | 'table' | readonly (string | boolean)[];
export type Kinds = Readonly<Record<string, Kind>>;

export const RUN: Kinds = { steps: 'count', epochs: 'number', batchSize: 'count', seqLen: 'count', gradientAccumulationSteps: 'count', learningRate: 'number', maxGradNorm: 'number', seed: 'count', precision: ['f32', 'bf16'], baseStorage: ['stored', 'bf16', 'f32'], gradientCheckpointing: 'boolean', gradientRelease: 'boolean', reportEvery: 'count', documentMask: 'boolean', dataOrder: ['shuffled', 'sequential'], validationFraction: 'number', validationRows: ['random', 'last'], dataWeights: 'numbers', form: ['text', 'jsonl', 'json', 'csv', 'tsv', 'tokens'], onBadRow: ['stop', 'skip'], lossOn: ['assistant', 'last', 'all'], onLong: ['cut', 'skip', 'split'], packing: 'boolean', chatDate: 'string' };
export const ADAPTER: Kinds = { r: 'count', alpha: 'number', targetModules: 'names', excludeModules: 'names', layersToTransform: 'counts', layersPattern: 'names', rankPattern: 'table', alphaPattern: 'table', dropout: 'number', rslora: 'boolean', modulesToSave: 'list', init: [true, 'gaussian'], bias: ['none'] };
export const BLOCK_COORDINATE: Kinds = { blocks: 'count', interval: 'count', order: ['shuffled', 'ascending', 'descending'], embedding: 'boolean', norm: 'boolean', head: 'boolean' };
export const COLUMNS: Kinds = { prompt: 'string', completion: 'string', system: 'string', text: 'string', messages: 'string' };
export const GROUP: Kinds = { pattern: 'string', weightDecay: 'number', learningRateScale: 'number', frozen: 'boolean' };
export const SAMPLE: Kinds = { maxTokens: 'count', temperature: 'number', topK: 'count', topP: 'number', seed: 'count', topLogprobs: 'count' };
export const SCORE: Kinds = { top: 'count' };
export const OPTIMIZERS: Record<string, Kinds> = {
  adamw: { beta1: 'number', beta2: 'number', eps: 'number', weightDecay: 'number', stochasticRounding: 'boolean' },
  adafactor: { decayRate: 'number', beta2Cap: 'number', clipThreshold: 'number', eps1: 'number', eps2: 'number', weightDecay: 'number', relativeStep: 'boolean', stochasticRounding: 'boolean' },
  apollo: { beta1: 'number', beta2: 'number', eps: 'number', weightDecay: 'number', mini: 'boolean', rank: 'count', scale: 'number or auto', scaleFront: 'boolean', growthLimit: 'number or null', projected: ['blocks', 'all'], adamwLearningRateScale: 'number', updateSteps: 'count', projector: ['normal', 'orthogonal'], stochasticRounding: 'boolean' },
  sgd: { momentum: 'number', nesterov: 'boolean', weightDecay: 'number', stochasticRounding: 'boolean' },
};
export const SCHEDULES: Record<string, Kinds> = {
  constant: { warmupSteps: 'count', warmupFromZero: 'boolean' },
  cosine: { warmupSteps: 'count', warmupFromZero: 'boolean', totalSteps: 'count', minLearningRate: 'number' },
  linear: { warmupSteps: 'count', warmupFromZero: 'boolean', totalSteps: 'count', minLearningRate: 'number' },
  wsd: { warmupSteps: 'count', warmupFromZero: 'boolean', decaySteps: 'count', decayStartStep: 'integer', startDecay: 'boolean', decayType: ['harmonic', 'rsqrt', 'exponential', 'linear', 'one_minus_sqrt'], minLearningRate: 'number' },
  infinite: { warmupSteps: 'count', warmupFromZero: 'boolean', cooldownSteps: 'count', constantLearningRate: 'number', annealingSteps: 'count', tau: 'number', annealingStartStep: 'integer', startAnnealing: 'boolean', annealingType: ['harmonic', 'rsqrt', 'exponential', 'linear', 'one_minus_sqrt'], minLearningRate: 'number' },
};
