/** Yields the tokens of a text that is being generated. */
import type { LinkOptions } from './link.js';
import type { Finding, SampledToken } from '../protocol/reports.js';
import type { SampleEnd } from '../protocol/events.js';
import { EventQueue } from './queue.js';

/** Options of every request about a text. */
export interface AskedOptions {
  /** Aborts the call. */
  signal?: AbortSignal | undefined;
  /**
   * Called with each warning about the text: characters without a token (`data.unknown`), control tokens in it (`data.control`). Without it the
   * console has them.
   */
  onWarning?: ((warning: Finding) => void) | undefined;
}

/**
 * @internal Yields tokens as `made` produces them, and returns the reason why the text ended. Leaving the loop ends the generation. After a loss of the worker
 * the generation is repeated, unless a token was already yielded.
 */
export async function* streamed(
  made: (options: LinkOptions) => Promise<SampleEnd>,
  { signal, onWarning }: AskedOptions,
): AsyncGenerator<SampledToken, SampleEnd | undefined> {
  const queue = new EventQueue<SampledToken>();
  const leaving = new AbortController();
  let begun = false;
  const onToken = (token: SampledToken): void => {
    begun = true;
    queue.push(token);
  };
  const both = signal ? AbortSignal.any([signal, leaving.signal]) : leaving.signal;
  const ended = made({ signal: both, onToken, onWarning, again: () => !begun }).then(
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
    return await ended;
  } finally {
    leaving.abort();
    await ended;
  }
}
