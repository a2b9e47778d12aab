/** Features of a worker that Node lacks, for tests that run a worker's code outside of the package. */
import 'fake-indexeddb/auto';

import * as environment from '../src/testing/environment.js';
import { PAGE_CODES } from '../src/protocol/generated/page-codes.js';
import { WORKER_CODES } from '../src/protocol/generated/worker-codes.js';
import { addCodes } from '../src/protocol/sentence.js';

const { Blob, File, FileReaderSync } = environment;
Object.assign(globalThis, { Blob, File, FileReaderSync });
// Tests of single modules do not load the entry points, which do this.
addCodes(PAGE_CODES);
addCodes(WORKER_CODES);
