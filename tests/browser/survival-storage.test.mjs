// The short form of the torture tests: kill -9, full storage, damaged pieces, the way to the native runner and back, two tabs.
import { survive } from '../torture/short.mjs';

survive(['kills', 'storage', 'quota', 'flips', 'defaults', 'crossing', 'tabs']);
