/** The fake core's texts: letters that depend on the prompt's length and the number of steps. */
import type { JsData, Values } from 'tabtune-wasm';
import { called, fake, refuse, unlessLost, wait } from './fake-calls.js';

export class TokenStream {
  #at = 0;
  constructor(
    readonly max: number,
    readonly offset: number,
    readonly skill: number,
    readonly warned: readonly unknown[] = [],
  ) {}
  async next(): Promise<unknown> {
    if (this.#at >= this.max) return undefined;
    await called('token', this.#at);
    await wait(fake.stepMillis / 8);
    unlessLost();
    const text = 'etaoin shrdlu'.charAt((this.#at++ * 31) % 13);
    return { id: text.charCodeAt(0), text, logprob: -0.5, top: [] };
  }
  warnings(): unknown {
    return this.warned;
  }
  end(): string | undefined {
    return this.#at >= this.max ? 'length' : undefined;
  }
  free(): void {
    return;
  }
}

/** The fake vocabulary has no euro sign. */
export const told = (text: string): unknown[] =>
  text.includes('€') ? [{ code: 'data.unknown', message: 'no token for "€" (1)' }] : [];

export function generated(prompt: string, options: Values, skill: number): TokenStream {
  const { max_tokens: max = 100, temperature = 0.8 } = options as {
    max_tokens?: number;
    temperature?: number;
  };
  if (temperature < 0)
    refuse('BAD_OPTION', 'config.invalid', 'temperature: expected finite and ≥ 0', {
      path: 'temperature',
    });
  if (prompt === '')
    refuse('BAD_OPTION', 'config.invalid', 'prompt: expected at least one token, found none', {
      path: 'prompt',
    });
  if (prompt.length > 1000)
    refuse(
      'BAD_OPTION',
      'model.context',
      `sequence of ${prompt.length} tokens: the model's context is 1000`,
    );
  return new TokenStream(Math.min(max, 400), prompt.length, skill, told(prompt));
}

export function answered(
  conversation: Values,
  options: Values,
  skill: number,
  base: boolean,
): TokenStream {
  fake.asked.push({ ...conversation, ...(base ? { base } : {}) });
  return generated(JSON.stringify(conversation), options, skill);
}

/** Scores a text; the first token has no probability, as in the core. */
export async function scoredAs(request: Values, base: boolean): Promise<unknown> {
  await called('score');
  fake.asked.push({ ...request, ...(base ? { base } : {}) });
  const top = [{ id: 98, text: 'b', prob: 0.5 }];
  return {
    tokens: [
      { id: 97, text: 'a', top: [] },
      { id: 98, text: 'b', logprob: -0.5, rank: 1, top },
    ],
    loss: 0.5,
    warnings: told(JSON.stringify(request)),
  };
}

/** Returns the rows of files: each line is an example of two tokens, the second of which is learned. */
export function rowsOf({ files }: JsData): unknown {
  const lines = files
    .flatMap((file) => new TextDecoder().decode(file.read(0, file.size)).split('\n'))
    .filter((line) => line !== '');
  const segment = (id: number, learned: boolean): unknown => ({
    text: String.fromCharCode(id),
    tokens: [{ id, text: String.fromCharCode(id) }],
    learned,
  });
  return lines.map((_, index) => ({
    row: { file: 0, line: index + 1, row: index + 1 },
    segments: [segment(97, false), segment(98, true)],
  }));
}

/** Weights on the device. */
export class LoadedModel {
  async chat(conversation: Values, options: Values, base: boolean): Promise<TokenStream> {
    return answered(conversation, options, 0, base);
  }
  score(request: Values, base: boolean): Promise<unknown> {
    return scoredAs(request, base);
  }
  free(): void {
    fake.loaded -= 1;
  }
}
