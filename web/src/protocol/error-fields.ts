/** The fields of an error's detail. The type, the parser and the copy of what the core throws are all made from one list. */
import { anything, flag, listOf, number, optional, record, text } from './parse.js';
import type { Parser } from './parse.js';
import { spokenIn } from './sentence.js';

/** Kind of each field; every field may be absent. */
const FIELDS = {
  /** Fixed dotted code, for example `safetensors.offset.overlap`. */
  code: 'string',
  /** Path of the option or name of the file that is at fault. */
  path: 'string',
  /** Reason why a file was refused. */
  refusal: 'any',
  /** All reasons why a file was refused; never empty. */
  refusals: 'list',
  need: 'number',
  have: 'number',
  /** With LIMIT_EXCEEDED: name of the limit. */
  limit: 'string',
  /** With MISSING_FEATURE: name of the feature. */
  feature: 'string',
  /** With SHADER_FAILED: name of the kernel. */
  kernel: 'string',
  /** Position in a file, in bytes. */
  offset: 'number',
  /** With INTEGRITY: expected (`want`) and found (`got`) digest. */
  want: 'string',
  got: 'string',
  reason: 'string',
  /** The run that another tab holds. */
  run: 'string',
  /** With CHECKPOINT_CORRUPT: number of the chunk. */
  chunk: 'number',
  /** With NON_FINITE: the refused step; with a GPU fault: the last confirmed step. */
  step: 'number',
  /** With NON_FINITE: `loss` or `grad_norm`. */
  tensor: 'string',
  /** True if the call was abandoned and the trainer continues in another worker. */
  recovered: 'boolean',
} as const;

interface Kinds {
  string: string;
  number: number;
  boolean: boolean;
  any: unknown;
  list: unknown[];
}

/** Details of an error beyond its message: the dotted code, and the fields that belong to it. */
export type ErrorDetail = {
  -readonly [F in keyof typeof FIELDS]?: Kinds[(typeof FIELDS)[F]] | undefined;
};

const PARSERS = {
  string: optional(text),
  number: optional(number),
  boolean: optional(flag),
  any: anything,
  list: optional(listOf(anything)),
};

/** @internal Parses the detail of an error that crosses between page and worker. */
export const errorDetail = record(
  Object.fromEntries(Object.entries(FIELDS).map(([field, kind]) => [field, PARSERS[kind]])),
  // The list gives each field the parser of its kind; TypeScript cannot follow `fromEntries`.
) as Parser<ErrorDetail>;

/** @internal Copies the fields that the core throws in addition to kind and message; a value of another kind is left out. */
export function detailOf(thrown: object): ErrorDetail {
  const detail: ErrorDetail = {};
  for (const [field, kind] of Object.entries(FIELDS)) {
    const value: unknown = Reflect.get(thrown, field);
    const given = typeof value === 'bigint' ? Number(value) : value;
    if (typeof given === kind) Reflect.set(detail, field, given);
  }
  const [refusal, refusals] = [
    spokenIn(Reflect.get(thrown, 'refusal')),
    spokenIn(Reflect.get(thrown, 'refusals')),
  ];
  if (Array.isArray(refusals) && refusals.length > 0) detail.refusals = refusals;
  if (refusal !== undefined) {
    detail.refusal = refusal;
    detail.refusals ??= [refusal];
  }
  return detail;
}
