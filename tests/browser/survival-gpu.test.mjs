// The short form of the torture: the GPU and the core go away, the least that a device may offer, large models, models of other makers,
// long runs.
import { survive } from '../torture/short.mjs';

survive(['losses', 'panics', 'heap', 'models', 'csp', 'limits', 'soak']);
