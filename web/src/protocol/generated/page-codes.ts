// Made by npm run generate; not for editing.
import type { CodeRow } from './codes.js';

/** The dotted words that the page alone raises. */
export const PAGE_CODES = {
  'browser.insecure': ['UNSUPPORTED_BROWSER', 'this page was opened over plain http, where browsers offer neither WebGPU nor the locks and the storage that training needs.', 'Open it on https:// or on localhost.'],
  'browser.origin': ['UNSUPPORTED_BROWSER', 'this page is in a frame without an origin of its own, where browsers offer neither workers nor storage.', 'Give the frame its origin: sandbox="allow-scripts allow-same-origin".'],
  'browser.worker': ['UNSUPPORTED_BROWSER', 'training needs module workers, which do not exist here.', 'Run this in a page of a browser.'],
  'device.unavailable': ['GPU_UNAVAILABLE', 'the GPU did not come back, or was lost again and again.', 'The last checkpoint is whole: reload the page and resume it.'],
  'model.taken': ['BAD_OPTION', 'this model was handed to a trainer, or disposed.', 'Open it again.'],
  'run.memory': ['WARNING', 'a step needs more memory than the GPU has, so the run is paused.'],
  'run.recovered': ['WARNING', '{found} The run was restored from step {expected} and is now at step {subject}.'],
  'worker.blocked': ['UNSUPPORTED_BROWSER', "the page's own rules forbid the training worker: {found}.", 'See "Page requirements".'],
  'worker.failed': ['WORKER_CRASHED', 'the training worker failed: {found}.', 'The last checkpoint is kept.'],
  'worker.silent': ['WORKER_CRASHED', 'the training worker did not answer {found}.'],
} as const satisfies Readonly<Record<string, CodeRow>>;
