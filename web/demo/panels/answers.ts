/** Answers of a model, as they are written: in a conversation, or as the continuation of a text. */
import type { ChatMessage, Finding, SampledToken, SampleEnd } from 'tabtune';

import { continued, LIKELIEST } from './continued.js';
import type { Choice } from './continued.js';
import type { Desk } from './desk.js';

/** An answer, whole or as far as it is written. */
export interface Answer {
  text: string;
  tokens: number;
  seed: number;
  /** Why it ended; undefined while it is written, and of one that was stopped or failed. */
  end?: SampleEnd | undefined;
  warnings: Finding[];
}

export const emptyAnswer = ({ seed }: Choice): Answer => ({
  text: '',
  tokens: 0,
  seed,
  warnings: [],
});

export const ENDS: Readonly<Record<SampleEnd, string>> = {
  stop: 'ended by itself',
  length: 'cut at the length',
  context: 'cut where the context is full',
};

/** A prompt: the messages of a conversation, or a text to continue. */
export type Prompt = ChatMessage[] | string;

/** Adds the tokens of `stream` to the answer; `grown` is called after each of them. */
async function take(
  answer: Answer,
  stream: AsyncGenerator<SampledToken, SampleEnd | undefined>,
  grown: () => void,
): Promise<void> {
  for (;;) {
    const next = await stream.next();
    if (next.done === true) {
      answer.end = next.value;
      return;
    }
    answer.text += next.value.text;
    answer.tokens += 1;
    grown();
  }
}

interface How {
  signal: AbortSignal;
  /** Called after each token. */
  grown: () => void;
}

/** Lets the model of the run answer. A continuation that is `paired` with one of the base is chosen among as few tokens as that one. */
export function answered(
  { trainer }: Desk,
  prompt: Prompt,
  choice: Choice,
  answer: Answer,
  { signal, grown, paired }: How & { paired: boolean },
): Promise<void> {
  const options = { ...choice, signal, onWarning: noting(answer) };
  if (typeof prompt !== 'string') return take(answer, trainer.chat(prompt, options), grown);
  const topK = paired ? LIKELIEST : 0;
  return take(answer, trainer.sample(prompt, { ...options, topK }), grown);
}

/** Lets the base answer. */
export async function baseAnswered(
  desk: Desk,
  prompt: Prompt,
  choice: Choice,
  answer: Answer,
  { signal, grown }: How,
): Promise<void> {
  const { base, trainer } = desk;
  if (typeof prompt !== 'string') {
    const options = { ...choice, signal, onWarning: noting(answer) };
    return take(answer, base.chat(prompt, options), grown);
  }
  const read = await base.score(prompt, { signal });
  answer.warnings = read.warnings;
  const ids = read.tokens.map(({ id }) => id);
  const stream = continued(base, ids, choice, { ends: await desk.ends(signal), signal });
  for (;;) {
    const next = await stream.next();
    if (next.done === true) {
      answer.end = next.value;
      return;
    }
    answer.text = await trainer.detokenize(next.value);
    answer.tokens = next.value.length;
    grown();
  }
}

const noting =
  (answer: Answer) =>
  (warning: Finding): void => {
    answer.warnings.push(warning);
  };
