// The short form of the torture, what has a time to keep: other tabs, aborts, a hidden tab. tests/run.mjs runs nothing beside it.
import { survive } from '../torture/short.mjs';

survive(['tabs', 'abort', 'hidden']);
