/** Custom metrics of data rows, computed from the probabilities that the model gives to their tokens. */
import { allOf, boolean, naturalNumber } from './checks.js';
import { scored } from './asking.js';
import type { Asker, ScoredToken } from './asking.js';
import { optionsOf } from './given.js';
import { toData } from './data-inputs.js';
import { signalOf } from './request-inputs.js';
import type { DataInput } from './data-inputs.js';
import { runSettings } from './options.js';
import type { TrainOptions } from './options.js';
import type { DataPreview } from '../protocol/reports.js';
import { badOption } from '../protocol/errors.js';

/** A row with the probabilities that the current weights give to it. */
export interface ScoredRow {
  /** Position of the row: the index of its file, and its first line, counted from 1. Rows of token ids have no position. */
  row: DataPreview[number]['row'];
  /** All tokens of the row in order, including special ones; `learned` marks those that a run learns to predict. */
  tokens: readonly (ScoredToken & { learned: boolean })[];
  /** Mean of −logprob over the learned tokens, in nats. */
  loss: number;
  /** Share of the learned tokens that greedy generation would choose. */
  accuracy: number;
}

/** Options of an evaluation of rows; those inherited from training determine how the data are read. */
export interface RowsOptions extends TrainOptions {
  /** Computes the metric of a row. It may query the model itself, for example through `chat`: nothing else runs in the meantime. */
  metric: (row: ScoredRow) => number | Promise<number>;
  /** Number of most likely tokens per position that are passed to the metric, at most 20. Default: 0. */
  top?: number | undefined;
  /** Evaluates the base model, without the adapter that is attached to it or being trained. Default: false. */
  base?: boolean | undefined;
  /** Aborts the call. */
  signal?: AbortSignal | undefined;
}

/** Result of an evaluation of rows. */
export interface RowsReport {
  /** Mean of the metric over the rows. */
  metric: number;
  /** Metric of each row, in the order of the data. */
  values: number[];
  /** Mean of −logprob over all learned tokens, in nats. */
  loss: number;
  /** Share of all learned tokens that greedy generation would choose. */
  accuracy: number;
  /** Number of learned tokens. */
  tokens: number;
}

const sum = (values: readonly number[]): number =>
  values.reduce((total, value) => total + value, 0);

/** @internal Scores each row of the data and computes its metric. */
export async function evaluatedRows(
  ask: Asker,
  data: DataInput,
  options: RowsOptions,
): Promise<RowsReport> {
  const {
    metric,
    top = 0,
    base = false,
    signal: callSignal,
    ...settings
  } = optionsOf(options, 'the evaluation');
  const signal = signalOf(callSignal, data);
  const [, , , config] = allOf(
    () => {
      if (typeof metric !== 'function') throw badOption('metric', 'a function', metric);
    },
    () => naturalNumber(top, 'top'),
    () => boolean(base, 'base'),
    () => runSettings(settings, ['metric', 'top', 'base', 'signal']),
  );
  const { spec, weights } = await toData(data, undefined, signal);
  if (weights)
    throw badOption('data', 'files without a weight: each row is evaluated once', weights);
  const examples = await ask('model.rows', { data: spec, config }, { signal });
  if (examples.length === 0) throw badOption('data', 'rows with a token that is learned', 'none');
  const values: number[] = [];
  let [loss, hits, tokens] = [0, 0, 0];
  for (const example of examples) {
    const row = await scoredRow(ask, example, { top, base, signal });
    const learned = row.tokens.filter((token) => token.learned).length;
    loss += row.loss * learned;
    hits += row.accuracy * learned;
    tokens += learned;
    const value: unknown = await metric(row);
    if (typeof value !== 'number' || !Number.isFinite(value))
      throw badOption('metric', `a finite number of row ${values.length + 1}`, value);
    values.push(value);
  }
  return {
    metric: sum(values) / values.length,
    values,
    loss: loss / tokens,
    accuracy: Math.round(hits) / tokens,
    tokens,
  };
}

async function scoredRow(
  ask: Asker,
  { row, segments }: DataPreview[number],
  how: Required<Pick<RowsOptions, 'top' | 'base'>> & { signal: AbortSignal | undefined },
): Promise<ScoredRow> {
  const learned = segments.flatMap((segment) => segment.tokens.map(() => segment.learned));
  const score = await scored(
    ask,
    segments.flatMap((segment) => segment.tokens.map(({ id }) => id)),
    how,
  );
  const tokens = score.tokens.map((token, at) => ({ ...token, learned: learned[at] === true }));
  const targets = tokens.filter((token) => token.learned);
  const loss = -sum(targets.map(({ logprob = 0 }) => logprob)) / targets.length;
  return {
    row,
    tokens,
    loss,
    accuracy: targets.filter(({ rank }) => rank === 1).length / targets.length,
  };
}
