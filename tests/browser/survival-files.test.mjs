// The short form of the torture: hostile files, exports with the native program's bytes, and large tensors on their way out.
import { survive } from '../torture/short.mjs';

survive(['files']);
