/** Errors of the storage: converts what IndexedDB and OPFS throw to a `TabtuneError`. */
import { escaped, fault, TabtuneError, toTabtuneError } from '../../protocol/errors.js';
import type { Word } from '../../protocol/errors.js';
import { sentence } from '../../protocol/sentence.js';
import type { Values } from '../../protocol/sentence.js';

/** Returns a name from a file or a database in a form that is safe in a message. */
export const quoted = (name: string): string =>
  escaped(name.length > 64 ? `${name.slice(0, 63)}…` : name);

export const nameOf = (thrown: unknown): unknown =>
  typeof thrown === 'object' && thrown !== null ? Reflect.get(thrown, 'name') : undefined;

export const corrupt = (
  values: Values | string,
  code: Word,
  place: { path?: string; chunk?: number } = {},
): TabtuneError =>
  new TabtuneError(
    'CHECKPOINT_CORRUPT',
    sentence(code, typeof values === 'string' ? { found: values } : values),
    { code, ...place },
  );

export const absent = (run: string): TabtuneError =>
  fault('checkpoint.none', { subject: quoted(run) });

export const tooNew = (format: number, supported: number): TabtuneError =>
  fault('checkpoint.version', { expected: supported, found: format });

export const vanished = (run: string, what: string): TabtuneError =>
  fault('storage.vanished', { subject: quoted(run), found: `${what} is gone` });

export const failed = (what: string, cause?: unknown): TabtuneError =>
  fault('storage.failed', { found: what }, {}, cause);

export const broken = (file: string, found: string): TabtuneError =>
  fault('storage.stream', { subject: quoted(file), found });

export const noRoom = (need: number, have: number | undefined, cause?: unknown): TabtuneError => {
  return fault('storage.quota', { expected: need, found: have }, { need, have }, cause);
};

export const blocked = (found?: string): TabtuneError => fault('storage.blocked', { found });

/** Returns the error of an access to the database that takes too long. */
export const hanging = (access: string, millis: number): TabtuneError =>
  blocked(
    `the browser did not ${access} the storage of checkpoints within ${millis / 1000} seconds, and until it does nothing is saved`,
  );

export const closed = (cause?: unknown): TabtuneError => fault('storage.closed', {}, {}, cause);

/** Converts failures of IndexedDB. An error of the core, which has a `kind`, is passed on unchanged. */
export function storageError(thrown: unknown): TabtuneError {
  if (thrown instanceof TabtuneError) return thrown;
  const error = toTabtuneError(thrown, 'STORAGE_FAILED');
  if (typeof thrown === 'object' && thrown !== null && Reflect.get(thrown, 'kind') === error.code)
    return error;
  if (nameOf(thrown) === 'VersionError') return closed(thrown);
  if (error.code === 'QUOTA_EXCEEDED') {
    return fault('storage.quota', {}, {}, thrown);
  }
  return failed(error.message || error.detail.reason || 'no reason given', thrown);
}

/** Returns a fallback for a damaged database, so that the alternative storage is tried next. */
export const unlessFailed =
  <T>(instead: T) =>
  (thrown: unknown): T => {
    const error = storageError(thrown);
    if (error.code !== 'STORAGE_FAILED') throw error;
    return instead;
  };

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
