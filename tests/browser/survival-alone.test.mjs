// The short form of the torture tests with timing requirements: aborts, a hidden tab. tests/run.mjs runs nothing at the same time.
import { survive } from '../torture/short.mjs';

survive(['abort', 'hidden']);
