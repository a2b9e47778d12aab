import { ERROR_CODES } from './generated/codes.js';
import type { CODES, ErrorCode } from './generated/codes.js';
import type { PAGE_CODES } from './generated/page-codes.js';
import type { WORKER_CODES } from './generated/worker-codes.js';
import { brandOf } from './brand.js';
import { errorDetailFields } from './generated/reports.js';
import type { ErrorDetail } from './generated/reports.js';
import { classOf, sentence, spoken, spokenIn } from './sentence.js';
import type { Values } from './sentence.js';

/** Rows of the dotted words that TypeScript raises. */
type Rows = typeof CODES & typeof PAGE_CODES & typeof WORKER_CODES;
/** @internal The dotted words that TypeScript raises. */
export type Word = keyof Rows;
/** The words among them that are of errors. */
type Raised = { [W in Word]: Rows[W][0] extends ErrorCode ? W : never }[Word];

export { ERROR_CODES } from './generated/codes.js';
export type { ErrorDetail } from './generated/reports.js';
export type { ErrorCode } from './generated/codes.js';

/** @internal Details of an error raised in TypeScript, whose code is in the list. */
export type Detail = Omit<ErrorDetail, 'code'> & { code?: Word | undefined };

/** The only error class of the package. Its message says what failed, why, and what to do. */
export class TabtuneError extends Error {
  /** Class of the error; codes are never renamed. */
  readonly code: ErrorCode;
  /** Exact reason, `detail.code`, and the values that belong to it. */
  readonly detail: ErrorDetail;
  /** @internal Creates an error; `fault` chooses the class by the code. */
  constructor(code: ErrorCode, message: string, detail: Detail = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    // Every user of `signal` must be able to recognise an abort, by its name.
    this.name = code === 'ABORTED' ? 'AbortError' : 'TabtuneError';
    this.code = code;
    this.detail = detail;
  }
}

/** @internal Returns the error with this code and the sentence of its values, in the class that belongs to the code. */
export const fault = (
  code: Raised,
  values: Values = {},
  detail: Omit<Detail, 'code'> = {},
  cause?: unknown,
): TabtuneError =>
  // The class of these codes is that of an error.
  new TabtuneError(classOf(code) as ErrorCode, sentence(code, values), { code, ...detail }, cause);

/** @internal Returns a warning with the sentence of its values. */
export const finding = (code: Word, values: Values = {}): { code: Word; message: string } => ({
  code,
  message: sentence(code, values),
});

/** @internal Returns the same error with more details. */
export const withDetail = (
  error: TabtuneError,
  more: Omit<Detail, 'code'>,
  message = error.message,
): TabtuneError =>
  fromErrorData({ ...toErrorData(error), message, detail: { ...error.detail, ...more } });

/** @internal An error in the form in which it crosses between page and worker. */
export interface ErrorData {
  code: ErrorCode;
  message: string;
  detail: ErrorDetail;
  cause?: string | undefined;
}

/** @internal Returns whether a value is one of the error classes. */
export const isErrorCode = (word: unknown): word is ErrorCode =>
  ERROR_CODES.some((code) => code === word);

/** @internal Returns the error of an aborted call. */
export const aborted = (what = 'the call'): TabtuneError =>
  fault('call.aborted', { subject: what });
/** @internal Returns the error of an option whose value is described by `found`. Its one refusal is joined by those of the call's other options. */
export function invalidOption(
  path: string,
  expected: string,
  found: string,
  hint?: string,
): TabtuneError {
  const code = 'option.invalid';
  const values = { artifact: '', subject: path, expected, found, hint };
  const refusal = { code, stage: 'open', ...values, message: sentence(code, values) };
  return fault(code, values, { path, refusals: [refusal] });
}
/** @internal Returns the error of an option with an invalid value. */
export const badOption = (path: string, expected: string, found: unknown): TabtuneError =>
  invalidOption(path, expected, named(found));
/** @internal Returns the error of an invalid message. */
export const protocolError = (found: string): TabtuneError => fault('protocol.invalid', { found });

/** @internal Returns the error of a destination of an export that threw. */
export function sinkFault(thrown: unknown): TabtuneError {
  const { message, detail } = toTabtuneError(thrown);
  return fault('sink.write', { found: message }, { reason: detail.reason }, thrown);
}

/** @internal Returns the message of a thrown value, which need not be an error. */
export const messageOf = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message : String(thrown);

/** Describes objects and functions by their class, everything else by its value. */
function named(value: unknown): string {
  const brand = typeof value === 'function' ? 'function' : brandOf(value);
  const plain =
    brand !== 'function' &&
    (typeof value !== 'object' || value === null || brand === 'Object' || brand === 'Array');
  return plain ? shown(value) : `${/^[AEIOU]/.test(brand) ? 'an' : 'a'} ${brand}`;
}

/** @internal Returns a value as shown in a message: short, and with control and bidi characters escaped. */
export function shown(value: unknown): string {
  let word: string;
  try {
    word = typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? typeof value);
  } catch {
    word = Object.prototype.toString.call(value);
  }
  return escaped(word.length > 120 ? `${word.slice(0, 119)}…` : word);
}

/** Escapes control and bidi characters: file and tensor names are data and may contain any. */
export function escaped(name: string): string {
  return name.replace(
    /[\p{Cc}\p{Cf}\u2028\u2029]/gu,
    (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

const CODES_BY_NAME = new Map<string, ErrorCode>([
  ['AbortError', 'ABORTED'],
  ['QuotaExceededError', 'QUOTA_EXCEEDED'],
  ['ParseError', 'PROTOCOL'],
  ['NotReadableError', 'BAD_MODEL_FILE'],
  ['NotFoundError', 'BAD_MODEL_FILE'],
]);

/** Returns the details of what the core has thrown; a value of the wrong form is left out. */
function detailOf(thrown: object): ErrorDetail {
  const detail: ErrorDetail = {};
  for (const [field, parser] of Object.entries(errorDetailFields)) {
    try {
      const value = parser(spokenIn(Reflect.get(thrown, field)), field);
      if (value !== undefined) Reflect.set(detail, field, value);
    } catch {
      continue;
    }
  }
  return detail;
}

/**
 * @internal Converts any thrown value to a `TabtuneError`; wasm throws plain objects with `kind`, `code`, `message` and the fields that belong to
 * them.
 */
export function toTabtuneError(
  thrown: unknown,
  otherwise: ErrorCode = 'WORKER_CRASHED',
): TabtuneError {
  if (thrown instanceof TabtuneError) return thrown;
  if (typeof thrown === 'object' && thrown !== null) {
    const kind: unknown = Reflect.get(thrown, 'kind');
    const message: unknown = Reflect.get(thrown, 'message');
    const said = typeof message === 'string' ? spoken(message) : 'an unknown failure';
    if (isErrorCode(kind))
      return fromErrorData({ code: kind, message: said, detail: detailOf(thrown) });
    const name: unknown = Reflect.get(thrown, 'name');
    const code = (typeof name === 'string' ? CODES_BY_NAME.get(name) : undefined) ?? otherwise;
    return new TabtuneError(code, said, typeof name === 'string' ? { reason: name } : {}, thrown);
  }
  return new TabtuneError(otherwise, String(thrown));
}

/** @internal Converts a thrown value to the form that crosses between page and worker. */
export function toErrorData(thrown: unknown): ErrorData {
  const error = toTabtuneError(thrown);
  const cause =
    error.cause === undefined
      ? undefined
      : error.cause instanceof Error
        ? `${error.cause.name}: ${error.cause.message}`
        : shown(error.cause);
  return { code: error.code, message: error.message, detail: { ...error.detail }, cause };
}

/** @internal Rebuilds an error that crossed between page and worker. */
export function fromErrorData({ code, message, detail, cause }: ErrorData): TabtuneError {
  // The core lists its own codes; here they are passed on.
  return new TabtuneError(code, message, detail as Detail, cause);
}
