/** Reports on training data: forms, rows, tokens, lengths, warnings, and examples token by token. */
import { count, flag, listOf, nullable, number, oneOf, record, text, tableOf } from './parse.js';
import type { Parsed } from './parse.js';

const form = oneOf('text', 'jsonl', 'json', 'csv', 'tsv', 'tokens');

/** Position of a row: the index of its file in the report, the line at which it begins, and its number among the rows of the file. */
const rowPlace = record({ file: count, line: count, row: count });

/** Facts that a person should know, with the first rows that they concern. */
const warnings = listOf(record({ code: text, count, rows: listOf(rowPlace), message: text }));

export const dataReport = record({
  /** Files, each with the form that was detected or given; streams have no rows. */
  files: listOf(record({ name: text, form, rows: nullable(count) })),
  /** Number of rows of each kind: chat, completion, text, tokens. */
  shapes: tableOf(count),
  /** Number of chats by the method that found their learned tokens: generation, prefix, per-answer, all. */
  rules: tableOf(count),
  /** Number of examples that are trained on; 0 for a stream. */
  examples: count,
  /** Number of examples, or tokens of a stream, that are kept for evaluation. */
  validation: count,
  /** Number of tokens in the training part, and of those that are learned. */
  tokens: record({ total: count, learned: count }),
  /** Distribution of the number of tokens per example; the histogram has bars of `histogramStep` tokens. Null for a stream. */
  lengths: nullable(
    record({
      min: count,
      p50: count,
      p95: count,
      max: count,
      histogram: listOf(count),
      histogramStep: count,
    }),
  ),
  seqLen: count,
  /** Number of examples whose end is left out. */
  cut: count,
  /** Number of examples that are left out: too long, or with nothing to learn within `seqLen`. */
  skipped: count,
  /** Number of sequences per epoch. */
  windows: count,
  /** Share of the positions in these sequences that hold tokens. */
  packedFraction: number,
  stepsPerEpoch: count,
  /** Tokens that end a text or a turn. */
  end: listOf(text),
  /** Facts that a person should know, with the first rows that they concern. */
  warnings,
  /** SHA-256 of the examples, or of the stream. */
  digest: text,
});
export type DataReport = Parsed<typeof dataReport>;

/** Examples as a step learns them: runs of tokens that are either learned or only read. The beginning of a stream has no row. */
export const dataPreview = listOf(
  record({
    row: nullable(rowPlace),
    segments: listOf(record({ text, tokens: listOf(record({ id: count, text })), learned: flag })),
  }),
);
export type DataPreview = Parsed<typeof dataPreview>;

/**
 * Summary of a file without a tokenizer: rows of each kind, including faulty ones, and the keys of the rows. The warning about entries of folders
 * that are not read is one of the first file's.
 */
export const fileSummaries = listOf(
  record({
    name: text,
    form,
    rows: nullable(count),
    shapes: tableOf(count),
    columns: listOf(text),
    characters: count,
    warnings,
  }),
);
export type FileSummary = Parsed<typeof fileSummaries>[number];

export const dataInspection = record({ report: dataReport, preview: dataPreview });
export type DataInspection = Parsed<typeof dataInspection>;
