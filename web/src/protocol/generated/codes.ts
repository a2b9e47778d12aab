// Made by npm run generate; not for editing.
/** Every class of failure. The names are never changed; `detail.code` has the exact reason. */
export const ERROR_CODES = [
  'UNSUPPORTED_BROWSER',
  'NO_ADAPTER',
  'MISSING_FEATURE',
  'LIMIT_EXCEEDED',
  'OUT_OF_MEMORY',
  'DEVICE_LOST',
  'GPU_UNAVAILABLE',
  'SHADER_FAILED',
  'WORKER_CRASHED',
  'BAD_MODEL_FILE',
  'UNSUPPORTED_ARCH',
  'UNSUPPORTED_QUANT',
  'INTEGRITY',
  'BAD_OPTION',
  'NON_FINITE',
  'QUOTA_EXCEEDED',
  'STORAGE_FAILED',
  'STORAGE_BLOCKED',
  'CHECKPOINT_CORRUPT',
  'CHECKPOINT_VERSION',
  'CHECKPOINT_MISMATCH',
  'BUSY',
  'PROTOCOL',
  'ABORTED',
] as const;
/** Class of an error; `detail.code` is the exact reason. */
export type ErrorCode = (typeof ERROR_CODES)[number];

/** Sentence of a code with places for its values, and what to do; how it is filled is written in crate/src/error/sentence.rs. */
export type Row = readonly [sentence: string, hint?: string];
/** The same after the class of the code. */
export type CodeRow = readonly [of: ErrorCode | 'WARNING' | undefined, ...Row];

/** The dotted words that both the page and the worker raise. */
export const CODES = {
  'call.aborted': ['ABORTED', '[{subject}|the work] was aborted[{?subject}|; the state is that of the last whole step].'],
  'data.empty': ['BAD_OPTION', 'there is nothing in it to learn from[: found {found}].'],
  'loop.running': ['BUSY', 'this trainer is already running.', 'Pause it first.'],
  'option.invalid': ['BAD_OPTION', 'option {subject}: expected {expected}, found {found}.'],
  'protocol.invalid': ['PROTOCOL', 'the page and its worker do not understand each other: {found}.', 'Reload the page.'],
  'run.locked': ['BUSY', '[run {subject} is being trained in another tab|another run of tabtune writes into the folder {found}].', 'Wait for its end, or end it first.'],
  'run.unlocked': ['WARNING', 'this browser cannot lock a run.', 'Do not train it in two tabs.'],
  'sink.write': ['STORAGE_FAILED', '[cannot write {subject}: {found}|the output cannot be written: {found}].'],
  'source.download': ['BAD_MODEL_FILE', '{subject} cannot be downloaded: {found}.'],
  'source.duplicate': ['BAD_OPTION', '{found} files are called {subject}: {expected}.', 'Give the one that is meant.'],
  'source.read': ['BAD_MODEL_FILE', 'cannot read {subject}: {found}.'],
  'source.too-large': ['LIMIT_EXCEEDED', '[tensor "{subject}" is too large|the file is too large][: expected {expected}, found {found}|: expected {expected}|: {found}].'],
  'storage.silent': ['WARNING', 'the browser does not answer when it is asked {subject}, so {found}.'],
} as const satisfies Readonly<Record<string, CodeRow>>;
