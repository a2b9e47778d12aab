/** Trains tokenizers for new models: without a GPU, each call in its own worker. */
import type { WorkerCall } from './call.js';
import { allOf, listOfStrings, naturalNumber, positiveInteger, translate } from './checks.js';
import { toData } from './data-inputs.js';
import type { DataInput } from './data-inputs.js';
import { optionsOf } from './given.js';
import { runSettings } from './options.js';
import type { ReadingOptions } from './options.js';
import { askOwnWorker, workerCall } from './own-worker.js';
import { signalOf } from './request-inputs.js';
import type { Values } from '../protocol/plain.js';
import type { TrainedTokenizer } from '../protocol/reports.js';

/** The vocabulary to learn: byte-level byte pair encoding. */
export interface TokenizerShape {
  /** Number of tokens, with the special ones and those of the 256 bytes. A small text may yield fewer. Default: 8192. */
  vocabSize?: number | undefined;
  /** Minimum number of times that a pair must occur to become a token. Default: 2. */
  minFrequency?: number | undefined;
  /** Tokens that texts have whole; they have the first ids. The first one's default, `<|endoftext|>`, ends a text. */
  specialTokens?: string[] | undefined;
}
/** Options of `trainTokenizer`. */
export interface TokenizerOptions extends WorkerCall, TokenizerShape, ReadingOptions {}

const SHAPE = {
  vocabSize: positiveInteger,
  minFrequency: naturalNumber,
  specialTokens: listOfStrings,
};

/** @internal Returns the core's `BpeSettings`. */
export const tokenizerShape = (shape: TokenizerShape, path: string): Values =>
  translate(shape, SHAPE, path);

/**
 * Learns a vocabulary from the texts of data, from those of rows, and from the messages of chats. The result equals that of the Python package
 * `tokenizers` with the same settings.
 */
export async function trainTokenizer(
  data: DataInput,
  options: TokenizerOptions = {},
): Promise<TrainedTokenizer> {
  const {
    vocabSize,
    minFrequency,
    specialTokens,
    form,
    columns,
    onBadRow,
    signal: ofCall,
    ...rest
  } = optionsOf(options, 'the tokenizer');
  const signal = signalOf(ofCall, data);
  const [call, shape, settings] = allOf(
    () => workerCall({ ...rest, signal }, [...Object.keys(SHAPE), 'form', 'columns', 'onBadRow']),
    () => tokenizerShape({ vocabSize, minFrequency, specialTokens }, ''),
    () => runSettings({ form, columns, onBadRow }),
  );
  const { spec } = await toData(data, undefined, signal);
  return askOwnWorker('tokenizer.train', { data: spec, options: shape, settings }, call);
}
