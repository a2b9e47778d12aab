// The short form of the torture: kill -9, full storage, damaged pieces, hostile files, the least that a device may offer.
import { survive } from '../torture/short.mjs';

survive(['kills', 'storage', 'quota', 'flips', 'files', 'defaults', 'crossing', 'limits']);
