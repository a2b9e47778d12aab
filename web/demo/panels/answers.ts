/** Answers of a model, as they are written: in a conversation, or as the continuation of a text. */
import type { ChatMessage, Finding, SampledToken, SampleEnd, Trainer } from 'tabtune';

/** How an answer is chosen. */
export interface Choice {
  temperature: number;
  maxTokens: number;
  seed: number;
}

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
export async function take(
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

/** Lets the model of a run answer. */
export function answered(
  trainer: Trainer,
  prompt: Prompt,
  choice: Choice,
  answer: Answer,
  { signal, grown }: { signal: AbortSignal; grown: () => void },
): Promise<void> {
  const onWarning = (warning: Finding): void => void answer.warnings.push(warning);
  const options = { ...choice, signal, onWarning };
  return take(
    answer,
    typeof prompt === 'string' ? trainer.sample(prompt, options) : trainer.chat(prompt, options),
    grown,
  );
}
