// The short form of the torture tests: hostile files, exports with the native program's bytes, and large tensors being exported.
import { survive } from '../torture/short.mjs';

survive(['files']);
