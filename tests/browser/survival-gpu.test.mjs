// The short form of the torture: the GPU and the core go away, the least that a device may offer, long runs, large models.
import { survive } from '../torture/short.mjs';

survive(['losses', 'panics', 'limits', 'soak', 'csp', 'heap', 'models']);
