// The short form of the torture tests that measure times: aborts, a hidden tab.
import { survive } from '../torture/short.mjs';

survive(['abort', 'hidden']);
