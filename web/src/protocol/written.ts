/** Reports on written files: exports, and adapters extracted from two models. */
import { warning } from './generated/reports.js';
import { count, flag, listOf, missing, number, oneOf, record, tableOf, text } from './parse.js';
import type { Parsed } from './parse.js';
import { namedFile, receipt } from './reports.js';

const written = { files: listOf(namedFile), receipt: missing(receipt) };
/** Files written by an export, returned if there is no target, and its receipt. */
export const writtenFiles = record(written);

/** Result of recomputing what a receipt states. */
export const verification = record({
  ok: flag,
  checks: listOf(
    record({
      name: text,
      result: oneOf('verified', 'absent', 'subset', 'skipped', 'differs'),
      expected: missing(text),
      found: missing(text),
    }),
  ),
});
export type Verification = Parsed<typeof verification>;

/** How much of the difference between two models an adapter holds; lengths are Frobenius norms. */
const extracted = {
  report: record({
    rank: count,
    /** Length of the part of all targets' differences that the factors do not represent, divided by the length of the differences. */
    error: number,
    /** The same ratio for each target, by the name of its tensor, and the length of its difference. */
    tensors: tableOf(record({ error: number, norm: number })),
    /** All other tensors: the length of the difference, and its share of the squared length of all differences. */
    uncovered: tableOf(record({ norm: number, share: number })),
  }),
  warnings: listOf(warning),
};
export const extraction = record(extracted);
export const extractedFiles = record({ ...extracted, ...written });
export type Extraction = Parsed<typeof extractedFiles>;
