/** What training data are learned as: forms, rows, tokens, lengths, warnings, and examples token by token. */
import { count, flag, listOf, nullable, number, oneOf, record, text, tableOf } from './parse.js';
import type { Parsed } from './parse.js';

const form = oneOf('text', 'jsonl', 'json', 'csv', 'tsv', 'tokens');

/** A row: the index of its file in the report, the line at which it begins, and its number among the rows of the file. */
const rowPlace = record({ file: count, line: count, row: count });

export const dataReport = record({
  /** The files, each with the form that was found or given; streams have no rows. */
  files: listOf(record({ name: text, form, rows: nullable(count) })),
  /** Rows of each kind: chat, completion, text, tokens. */
  shapes: tableOf(count),
  /** Chats by the way in which their learned tokens were found: generation, prefix, per-answer, all. */
  rules: tableOf(count),
  /** Examples that are trained on; 0 of a stream. */
  examples: count,
  /** Examples, or tokens of a stream, that are kept for evaluation. */
  validation: count,
  /** Tokens of the training part, and those that are learned. */
  tokens: record({ total: count, learned: count }),
  /** Tokens of an example; the histogram has bars of `histogramStep` tokens. Null of a stream. */
  lengths: nullable(record({ min: count, p50: count, p95: count, max: count, histogram: listOf(count), histogramStep: count })),
  seqLen: count,
  /** Examples whose end is left out. */
  cut: count,
  /** Examples that are left out: too long, or with nothing learned within `seqLen`. */
  skipped: count,
  /** Sequences of an epoch. */
  windows: count,
  /** Share of their positions that hold tokens. */
  packedFraction: number,
  stepsPerEpoch: count,
  /** Tokens that end a text or a turn. */
  end: listOf(text),
  /** What a person should know, with the first rows of which it is so. */
  warnings: listOf(record({ code: text, count, rows: listOf(rowPlace), message: text })),
  /** SHA-256 of the examples, or of the stream. */
  digest: text,
});
export type DataReport = Parsed<typeof dataReport>;

/** Examples as a step learns them: runs of tokens that are learned, or read alone. The beginning of a stream has no row. */
export const dataPreview = listOf(
  record({
    row: nullable(rowPlace),
    segments: listOf(record({ text, tokens: listOf(record({ id: count, text })), learned: flag })),
  }),
);
export type DataPreview = Parsed<typeof dataPreview>;

/** A file by itself, without a tokenizer: rows of each kind, and those that are faulty; the keys of the rows. */
export const fileSummaries = listOf(record({ name: text, form, rows: nullable(count), shapes: tableOf(count), columns: listOf(text), characters: count }));
export type FileSummary = Parsed<typeof fileSummaries>[number];

export const dataInspection = record({ report: dataReport, preview: dataPreview });
export type DataInspection = Parsed<typeof dataInspection>;
