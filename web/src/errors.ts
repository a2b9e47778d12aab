/** Every class of failure. Words are never renamed; the exact Rust error stands in `detail.code`. */
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
export type ErrorCode = (typeof ERROR_CODES)[number];

/** What is known beyond the message: the dotted word, the path of an option, sizes, a file's refusal. */
export interface ErrorDetail {
  /** Fixed dotted word, for example `safetensors.offset.overlap`. */
  code?: string | undefined;
  /** Path of the option at fault. */
  path?: string | undefined;
  /** A file's whole refusal. */
  refusal?: unknown;
  need?: number | undefined;
  have?: number | undefined;
  reason?: string | undefined;
  /** Of NON_FINITE: the step that was refused, and `loss` or `grad_norm`. */
  step?: number | undefined;
  tensor?: string | undefined;
}

/** The one error class. The message says what, why and what to do. */
export class TabtuneError extends Error {
  readonly code: ErrorCode;
  readonly detail: ErrorDetail;
  constructor(code: ErrorCode, message: string, detail: ErrorDetail = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    // An abort must be recognisable as one everywhere that `signal` is: by its name.
    this.name = code === 'ABORTED' ? 'AbortError' : 'TabtuneError';
    this.code = code;
    this.detail = detail;
  }
}

/** An error as it crosses between page and worker. */
export interface ErrorData {
  code: ErrorCode;
  message: string;
  detail: ErrorDetail;
  cause?: string | undefined;
}

export const isErrorCode = (word: unknown): word is ErrorCode => ERROR_CODES.some((code) => code === word);

export const aborted = (what = 'the call'): TabtuneError => new TabtuneError('ABORTED', `${what} was aborted`);
export const badOption = (path: string, expected: string, found: unknown): TabtuneError =>
  new TabtuneError('BAD_OPTION', `option ${path}: expected ${expected}, found ${shown(found)}`, { code: 'option.invalid', path });
export const protocolError = (message: string): TabtuneError => new TabtuneError('PROTOCOL', message, { code: 'protocol.invalid' });

/** A value in a message: short, and with control and bidi characters escaped. */
export function shown(value: unknown): string {
  let word: string;
  try {
    word = typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? typeof value);
  } catch {
    word = Object.prototype.toString.call(value);
  }
  return escaped(word.length > 120 ? `${word.slice(0, 119)}…` : word);
}

/** File and tensor names are data: control and bidi characters are shown, not obeyed. */
export function escaped(name: string): string {
  return name.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`);
}

const CODES_BY_NAME = new Map<string, ErrorCode>([
  ['AbortError', 'ABORTED'],
  ['QuotaExceededError', 'QUOTA_EXCEEDED'],
  ['ShapeError', 'PROTOCOL'],
  ['NotReadableError', 'BAD_MODEL_FILE'],
  ['NotFoundError', 'BAD_MODEL_FILE'],
]);

/** Any thrown value as a `TabtuneError`; wasm throws plain `{kind, code, message, refusal?, step?, tensor?}`. */
export function toTabtuneError(thrown: unknown, otherwise: ErrorCode = 'WORKER_CRASHED'): TabtuneError {
  if (thrown instanceof TabtuneError) return thrown;
  if (typeof thrown === 'object' && thrown !== null) {
    const kind: unknown = Reflect.get(thrown, 'kind');
    const message: unknown = Reflect.get(thrown, 'message');
    const said = typeof message === 'string' ? message : 'an unknown failure';
    if (isErrorCode(kind)) {
      const code: unknown = Reflect.get(thrown, 'code');
      const refusal: unknown = Reflect.get(thrown, 'refusal');
      const detail: ErrorDetail = typeof code === 'string' ? { code } : {};
      if (refusal !== undefined) detail.refusal = refusal;
      const step: unknown = Reflect.get(thrown, 'step');
      const tensor: unknown = Reflect.get(thrown, 'tensor');
      if (typeof step === 'number') detail.step = step;
      if (typeof tensor === 'string') detail.tensor = tensor;
      return new TabtuneError(kind, said, detail);
    }
    const name: unknown = Reflect.get(thrown, 'name');
    const code = (typeof name === 'string' ? CODES_BY_NAME.get(name) : undefined) ?? otherwise;
    return new TabtuneError(code, said, typeof name === 'string' ? { reason: name } : {}, thrown);
  }
  return new TabtuneError(otherwise, String(thrown));
}

export function toErrorData(thrown: unknown): ErrorData {
  const error = toTabtuneError(thrown);
  const cause = error.cause === undefined ? undefined : error.cause instanceof Error ? `${error.cause.name}: ${error.cause.message}` : shown(error.cause);
  return { code: error.code, message: error.message, detail: { ...error.detail }, cause };
}

export function fromErrorData(data: ErrorData): TabtuneError {
  return new TabtuneError(data.code, data.message, data.detail, data.cause);
}
