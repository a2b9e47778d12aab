// The short form of the torture tests: the GPU and the core disappear, the minimum that a device may offer, large models, models of other makers,
// long runs.
import { survive } from '../torture/short.mjs';

survive(['losses', 'panics', 'heap', 'models', 'csp', 'limits', 'soak']);
