/** Reports of what is written: exports, and adapters of two models. */
import { warning } from './generated/reports.js';
import { count, flag, listOf, missing, number, oneOf, record, tableOf, text } from './parse.js';
import type { Parsed } from './parse.js';
import { namedFile, receipt } from './reports.js';

const written = { files: listOf(namedFile), receipt: missing(receipt) };
/** What an export wrote. Without a target the files come back. */
export const writtenFiles = record(written);

/** What a receipt states, recomputed. */
export const verification = record({
  ok: flag,
  checks: listOf(record({ name: text, result: oneOf('verified', 'absent', 'subset', 'skipped', 'differs'), expected: missing(text), found: missing(text) })),
});
export type Verification = Parsed<typeof verification>;

/** What an adapter of two models holds of their difference; lengths are Frobenius norms. */
const extracted = {
  report: record({
    rank: count,
    /** Length of what the factors leave of all targets' differences, over that of the differences. */
    error: number,
    /** The targets by the names of their tensors: the same of each, and the length of its difference. */
    tensors: tableOf(record({ error: number, norm: number })),
    /** All other tensors: the length of the difference, and its share of the squared length of all. */
    uncovered: tableOf(record({ norm: number, share: number })),
  }),
  warnings: listOf(warning),
};
export const extraction = record(extracted);
export const extractedFiles = record({ ...extracted, ...written });
export type Extraction = Parsed<typeof extractedFiles>;
