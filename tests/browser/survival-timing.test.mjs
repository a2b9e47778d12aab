// The short form of the torture tests that depend on moments: aborts, a hidden tab, calls in any order.
import { survive } from '../torture/short.mjs';

survive(['abort', 'hidden', 'calls']);
