/** Tokens of one `trainer.sample` call, as they are made. */
import type { Link } from './link.js';
import type { SampledToken, SampleEnd } from '../protocol/reports.js';
import { EventQueue } from './queue.js';

/** Returns why the text ended. Leaving the loop ends the generation. After a loss it is repeated, unless a token was already returned. */
export async function* sampled(link: Link, prompt: string, options: string, signal: AbortSignal | undefined): AsyncGenerator<SampledToken, SampleEnd | undefined> {
  const queue = new EventQueue<SampledToken>();
  const leaving = new AbortController();
  let begun = false;
  const onToken = (token: SampledToken): void => {
    begun = true;
    queue.push(token);
  };
  const both = signal ? AbortSignal.any([signal, leaving.signal]) : leaving.signal;
  const made = link.call('trainer.sample', { prompt, options }, { signal: both, onToken, again: () => !begun }).then(
    (end) => {
      queue.end();
      return end;
    },
    (thrown: unknown) => {
      queue.end(thrown);
      return undefined;
    },
  );
  try {
    yield* queue;
    return await made;
  } finally {
    leaving.abort();
    await made;
  }
}
