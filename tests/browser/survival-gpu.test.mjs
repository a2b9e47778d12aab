// The short form of the torture: the GPU and the core go away, long runs, large models.
import { survive } from '../torture/short.mjs';

survive(['losses', 'panics', 'soak', 'csp', 'heap', 'models']);
