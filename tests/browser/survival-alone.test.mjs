// The short form of the torture, what has a time to keep: aborts, a hidden tab. tests/run.mjs runs nothing beside it.
import { survive } from '../torture/short.mjs';

survive(['abort', 'hidden']);
