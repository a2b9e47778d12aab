/** Errors of the storage: converts what IndexedDB and OPFS throw to a `TabtuneError`. */
import { escaped, fault, TabtuneError, toTabtuneError } from '../../protocol/errors.js';
import type { Word } from '../../protocol/generated/codes.js';

/** Returns a name from a file or a database in a form that is safe in a message. */
export const quoted = (name: string): string => escaped(name.length > 64 ? `${name.slice(0, 63)}…` : name);

export const nameOf = (thrown: unknown): unknown =>
  typeof thrown === 'object' && thrown !== null ? Reflect.get(thrown, 'name') : undefined;

export const corrupt = (what: string, code: Word, place: { path?: string; chunk?: number } = {}): TabtuneError =>
  new TabtuneError('CHECKPOINT_CORRUPT', `checkpoint is damaged: ${what}`, { code, ...place });

export const absent = (run: string): TabtuneError => fault('checkpoint.none', `run ${quoted(run)} has no checkpoint in this browser`);

export const tooNew = (format: number, supported: number): TabtuneError =>
  fault('checkpoint.version', `checkpoint format ${format}: this version reads ${supported}. Update the page.`);

export const vanished = (run: string, what: string): TabtuneError =>
  fault('storage.vanished', `${what} of run ${quoted(run)} went away during the save: site data was cleared, or the run was removed`);

export const failed = (what: string, cause?: unknown): TabtuneError =>
  fault('storage.failed', `checkpoint storage failed: ${what}`, {}, cause);

export const broken = (file: string, found: string): TabtuneError =>
  fault('storage.stream', `the stream of ${quoted(file)} is broken: ${found}`);

export const noRoom = (need: number, have: number | undefined, cause?: unknown): TabtuneError => {
  const allowed = have === undefined ? 'the browser has no room left' : `the browser allows ${have} more`;
  const message = `this checkpoint needs ${need} bytes and ${allowed}. Delete older runs, or export to a file.`;
  return fault('storage.quota', message, { need, have }, cause);
};

export const blocked = (): TabtuneError =>
  fault('storage.blocked', 'the checkpoint storage is held by another version of this page: close the other tab and try again');

export const hanging = (millis: number): TabtuneError =>
  fault(
    'storage.blocked',
    `the browser did not open the checkpoint storage within ${millis / 1000} seconds: until it does nothing is saved. Close other tabs of this page, or restart the browser`,
  );

export const closed = (cause?: unknown): TabtuneError =>
  fault('storage.closed', 'a newer version of this page has taken the checkpoint storage over: reload this tab', {}, cause);

/** Converts failures of IndexedDB. An error of the core, which has a `kind`, is passed on unchanged. */
export function storageError(thrown: unknown): TabtuneError {
  if (thrown instanceof TabtuneError) return thrown;
  const error = toTabtuneError(thrown, 'STORAGE_FAILED');
  if (typeof thrown === 'object' && thrown !== null && Reflect.get(thrown, 'kind') === error.code) return error;
  if (nameOf(thrown) === 'VersionError') return closed(thrown);
  if (error.code === 'QUOTA_EXCEEDED') {
    return fault('storage.quota', 'the browser has no room left. Delete older runs, or export this one to a file.', {}, thrown);
  }
  return failed(error.message || error.detail.reason || 'no reason given', thrown);
}

/** Wraps an error thrown by a caller's function, so that it passes through the storage unchanged. */
export class Foreign {
  constructor(readonly thrown: unknown) {}
}

export const foreign =
  <A extends unknown[], T>(work: (...given: A) => T | Promise<T>): ((...given: A) => Promise<T>) =>
  async (...given) => {
    try {
      return await work(...given);
    } catch (thrown) {
      // eslint-disable-next-line @typescript-eslint/only-throw-error -- unwrapped where the call ends
      throw new Foreign(thrown);
    }
  };
