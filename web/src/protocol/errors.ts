import { ERROR_CODES, WORDS } from './generated/codes.js';
import type { ErrorCode, Word } from './generated/codes.js';
import { brandOf } from './brand.js';

export { ERROR_CODES } from './generated/codes.js';
export type { ErrorCode } from './generated/codes.js';

/** Details beyond the message: the dotted word, and fields that belong to it. */
export interface ErrorDetail {
  /** Fixed dotted word, for example `safetensors.offset.overlap`. */
  code?: string | undefined;
  /** Path of the option, or name of the file, at fault. */
  path?: string | undefined;
  /** Why a file was refused. */
  refusal?: unknown;
  /** All reasons why it was refused; never empty. */
  refusals?: unknown[] | undefined;
  need?: number | undefined;
  have?: number | undefined;
  /** Of LIMIT_EXCEEDED: which limit. */
  limit?: string | undefined;
  /** Of MISSING_FEATURE. */
  feature?: string | undefined;
  /** Of SHADER_FAILED. */
  kernel?: string | undefined;
  /** Where in a file, in bytes. */
  offset?: number | undefined;
  /** Of INTEGRITY: the expected and the found digest. */
  want?: string | undefined;
  got?: string | undefined;
  reason?: string | undefined;
  /** The run that another tab holds. */
  run?: string | undefined;
  /** Of CHECKPOINT_CORRUPT: which chunk. */
  chunk?: number | undefined;
  /** Of NON_FINITE the step that was refused; of a GPU fault the last confirmed one. */
  step?: number | undefined;
  /** Of NON_FINITE: `loss` or `grad_norm`. */
  tensor?: string | undefined;
  /** The call was abandoned, and the trainer continues in another worker. */
  recovered?: boolean | undefined;
}
/** @internal Details of an error that TypeScript raises: its code is in the list. */
export type Detail = Omit<ErrorDetail, 'code'> & { code?: Word | undefined };

/** The one error class. The message says what, why and what to do. */
export class TabtuneError extends Error {
  readonly code: ErrorCode;
  readonly detail: ErrorDetail;
  /** @internal */
  constructor(code: ErrorCode, message: string, detail: Detail = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    // An abort must be recognisable as one everywhere that `signal` is: by its name.
    this.name = code === 'ABORTED' ? 'AbortError' : 'TabtuneError';
    this.code = code;
    this.detail = detail;
  }
}

type Raised = { [W in Word]: (typeof WORDS)[W] extends ErrorCode ? W : never }[Word];
/** @internal The error of a word, in that word's class. */
export const fault = (code: Raised, message: string, detail: Omit<Detail, 'code'> = {}, cause?: unknown): TabtuneError =>
  new TabtuneError(WORDS[code], message, { code, ...detail }, cause);

/** @internal The same failure with more details. */
export const withDetail = (error: TabtuneError, more: Omit<Detail, 'code'>, message = error.message): TabtuneError =>
  fromErrorData({ ...toErrorData(error), message, detail: { ...error.detail, ...more } });

/** @internal An error as it crosses between page and worker. */
export interface ErrorData {
  code: ErrorCode;
  message: string;
  detail: ErrorDetail;
  cause?: string | undefined;
}

/** @internal */
export const isErrorCode = (word: unknown): word is ErrorCode => ERROR_CODES.some((code) => code === word);

/** @internal */
export const aborted = (what = 'the call'): TabtuneError => fault('call.aborted', `${what} was aborted`);
/** @internal */
export const badOption = (path: string, expected: string, found: unknown): TabtuneError =>
  fault('option.invalid', `option ${path}: expected ${expected}, found ${named(found)}`, { path });
/** @internal */
export const protocolError = (message: string): TabtuneError => fault('protocol.invalid', message);

/** An object or a function by its kind, everything else by its value. */
function named(value: unknown): string {
  const brand = typeof value === 'function' ? 'function' : brandOf(value);
  const plain = brand !== 'function' && (typeof value !== 'object' || value === null || brand === 'Object' || brand === 'Array');
  return plain ? shown(value) : `${/^[AEIOU]/.test(brand) ? 'an' : 'a'} ${brand}`;
}

/** @internal A value in a message: short, and with control and bidi characters escaped. */
export function shown(value: unknown): string {
  let word: string;
  try {
    word = typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? typeof value);
  } catch {
    word = Object.prototype.toString.call(value);
  }
  return escaped(word.length > 120 ? `${word.slice(0, 119)}…` : word);
}

/** File and tensor names are data: control and bidi characters are escaped. */
export function escaped(name: string): string {
  return name.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`);
}

const CODES_BY_NAME = new Map<string, ErrorCode>([
  ['AbortError', 'ABORTED'],
  ['QuotaExceededError', 'QUOTA_EXCEEDED'],
  ['ParseError', 'PROTOCOL'],
  ['NotReadableError', 'BAD_MODEL_FILE'],
  ['NotFoundError', 'BAD_MODEL_FILE'],
]);

const NUMBERS = ['need', 'have', 'offset', 'step', 'chunk'] as const;
const TEXTS = ['code', 'path', 'limit', 'feature', 'kernel', 'want', 'got', 'reason', 'run', 'tensor'] as const;

/** The fields that the core throws beside kind and message. */
function detailOf(thrown: object): ErrorDetail {
  const detail: ErrorDetail = {};
  const given = (key: string): unknown => {
    const value: unknown = Reflect.get(thrown, key);
    return typeof value === 'bigint' ? Number(value) : value;
  };
  for (const key of NUMBERS) {
    const value = given(key);
    if (typeof value === 'number') detail[key] = value;
  }
  for (const key of TEXTS) {
    const value = given(key);
    if (typeof value === 'string') detail[key] = value;
  }
  const [refusal, refusals] = [given('refusal'), given('refusals')];
  if (Array.isArray(refusals) && refusals.length > 0) detail.refusals = refusals;
  if (refusal !== undefined) {
    detail.refusal = refusal;
    detail.refusals ??= [refusal];
  }
  return detail;
}

/** @internal Any thrown value as a `TabtuneError`; wasm throws plain objects of `kind`, `code`, `message` and what belongs to them. */
export function toTabtuneError(thrown: unknown, otherwise: ErrorCode = 'WORKER_CRASHED'): TabtuneError {
  if (thrown instanceof TabtuneError) return thrown;
  if (typeof thrown === 'object' && thrown !== null) {
    const kind: unknown = Reflect.get(thrown, 'kind');
    const message: unknown = Reflect.get(thrown, 'message');
    const said = typeof message === 'string' ? message : 'an unknown failure';
    if (isErrorCode(kind)) return fromErrorData({ code: kind, message: said, detail: detailOf(thrown) });
    const name: unknown = Reflect.get(thrown, 'name');
    const code = (typeof name === 'string' ? CODES_BY_NAME.get(name) : undefined) ?? otherwise;
    return new TabtuneError(code, said, typeof name === 'string' ? { reason: name } : {}, thrown);
  }
  return new TabtuneError(otherwise, String(thrown));
}

/** @internal */
export function toErrorData(thrown: unknown): ErrorData {
  const error = toTabtuneError(thrown);
  const cause = error.cause === undefined ? undefined : error.cause instanceof Error ? `${error.cause.name}: ${error.cause.message}` : shown(error.cause);
  return { code: error.code, message: error.message, detail: { ...error.detail }, cause };
}

/** @internal */
export function fromErrorData({ code, message, detail, cause }: ErrorData): TabtuneError {
  // The core lists its own words; here they are passed on.
  return new TabtuneError(code, message, detail as Detail, cause);
}
