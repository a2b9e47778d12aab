/** Trains tokenizers on data. */
import type { Values } from '../protocol/plain.js';
import type { TrainedTokenizer } from '../protocol/reports.js';
import { interruptible } from './core-mutex.js';
import type { RunData } from './data.js';
import { progressOf } from './progress.js';
import { parsed, trainTokenizer } from './wasm.js';
import type { Context } from './worker-state.js';

/** Settings of a training: those of the vocabulary, those of reading, and whether the data are the beginning of a file. */
export interface TokenizerTraining {
  options: Values;
  settings: Values;
  partial: boolean;
}

/** Trains a tokenizer on data, with the progress of reading in whole percents. */
export async function trainedOn(
  data: RunData,
  { options, settings, partial }: TokenizerTraining,
  { signal, onProgress }: Context,
): Promise<TrainedTokenizer> {
  const total = data.files.reduce((sum, { size }) => sum + size, 0);
  let told = -1;
  const onRead = (read: number): void => {
    const loaded = Math.min(read, total);
    const percent = Math.floor((100 * loaded) / total);
    if (percent === told) return;
    told = percent;
    onProgress(progressOf('read', undefined, loaded, total));
  };
  return parsed.trainedTokenizer(
    await interruptible(signal, () => trainTokenizer(data, options, settings, partial, onRead)),
  );
}
