/** Questions to loaded weights: an answer in a conversation, the probabilities of a text, the text of token ids. */
import { allOf, boolean, naturalNumber, objectOf, ofKinds, string, translate } from './checks.js';
import type { Check, Checks } from './checks.js';
import { badOption } from '../protocol/errors.js';
import { plain } from '../protocol/plain.js';
import { SCORE } from '../protocol/generated/kinds.js';
import type { SampleOptions, ScoreSettings } from '../protocol/generated/settings.js';
import type { Ask, Reply, Tag } from '../protocol/protocol.js';
import type { SampledToken, Score } from '../protocol/reports.js';
import type { SampleEnd } from '../protocol/events.js';
import { optionsOf } from './given.js';
import type { LinkOptions } from './link.js';
import { sampleSettings } from './options.js';
import { streamed } from './sampling.js';
import type { AskedOptions } from './sampling.js';

/** A message in the form that chat templates read; further keys that a template reads may be present too. */
export interface ChatMessage {
  /** Speaker: `system`, `user`, `assistant`, `tool`, or another that the template knows. */
  role: string;
  /** A text, or several texts that are joined. */
  content?: string | readonly { type?: 'text' | undefined; text: string }[] | null | undefined;
  [key: string]: unknown;
}

/** Input of the chat template in addition to the messages. */
export interface TemplateOptions {
  /** Tools that the template describes to the model. */
  tools?: readonly object[] | undefined;
  /** Documents, for templates that read them. */
  documents?: readonly object[] | undefined;
  /** Variables specific to the template, such as `enable_thinking`. */
  chatTemplateKwargs?: object | undefined;
}

/** Options of `chat`. */
export interface ChatOptions extends SampleOptions, TemplateOptions, AskedOptions {
  /** Lets the base model answer, without the adapter that is attached to it or being trained. Default: false. */
  base?: boolean | undefined;
}

/** Options of `score`. */
export interface ScoreOptions extends ScoreSettings, TemplateOptions {
  /** For messages: ends them with the opening of an assistant turn, as the template writes it. Default: false. */
  generation?: boolean | undefined;
  /** Scores with the base model, without its adapter. Default: false. */
  base?: boolean | undefined;
  /** Aborts the call. */
  signal?: AbortSignal | undefined;
}

/** Input that can be scored: a text, token ids, or messages, which the chat template turns into text. */
export type Scorable = string | readonly number[] | Uint32Array | readonly ChatMessage[];

/** One token of a score. */
export type ScoredToken = Score['tokens'][number];

/** @internal Sends a request to the worker that holds the weights. */
export type Asker = <T extends Tag>(
  tag: T,
  ask: Ask<T>,
  options?: LinkOptions,
) => Promise<Reply<T>>;

const list: Check = (value, path) => {
  if (Array.isArray(value))
    return value.map((item: unknown, index) => objectOf(item, `${path}[${index}]`));
  throw badOption(path, 'a list of objects', value);
};
const TEMPLATE: Checks = { tools: list, documents: list, chatTemplateKwargs: objectOf };
const SCORING = ofKinds(SCORE);
/** Names of the options of a chat or a score that are no settings. */
const CHAT = [...Object.keys(TEMPLATE), 'base', 'signal'];

/** Converts a conversation to the form that the core reads. */
function conversation(
  messages: unknown,
  { tools, documents, chatTemplateKwargs }: TemplateOptions,
): Record<string, unknown> {
  const given = list(messages, 'messages');
  return { messages: given, ...translate({ tools, documents, chatTemplateKwargs }, TEMPLATE, '') };
}

/** @internal Yields the tokens that continue a prompt. */
export function sampled(
  ask: Asker,
  prompt: string,
  options: SampleOptions & AskedOptions,
): AsyncGenerator<SampledToken, SampleEnd | undefined> {
  const { signal, onWarning, ...sampling } = optionsOf(options, 'the sample');
  const [, settings] = allOf(
    () => string(prompt, 'prompt'),
    () => sampleSettings(sampling, ['signal', 'onWarning']),
  );
  const request = { prompt, options: settings };
  return streamed((more) => ask('trainer.sample', request, more), { signal, onWarning });
}

/** @internal Yields the tokens of an answer, as `trainer.sample` yields those of a text. */
export function chatted(
  ask: Asker,
  messages: readonly ChatMessage[],
  options: ChatOptions,
): AsyncGenerator<SampledToken, SampleEnd | undefined> {
  const {
    signal,
    onWarning,
    tools,
    documents,
    chatTemplateKwargs,
    base = false,
    ...sampling
  } = optionsOf(options, 'the answer');
  const [, given, settings] = allOf(
    () => boolean(base, 'base'),
    () => conversation(messages, { tools, documents, chatTemplateKwargs }),
    () => sampleSettings(sampling, CHAT),
  );
  const request = { conversation: plain(given, 'messages'), options: settings, base };
  return streamed((more) => ask('model.chat', request, more), { signal, onWarning });
}

/** @internal Scores a text, token ids or messages. */
export async function scored(
  ask: Asker,
  scorable: Scorable,
  options: ScoreOptions,
): Promise<Score> {
  const {
    signal,
    generation,
    base = false,
    tools,
    documents,
    chatTemplateKwargs,
    ...rest
  } = optionsOf(options, 'the score');
  const written = { tools, documents, chatTemplateKwargs };
  const [, settings] = allOf(
    () => boolean(base, 'base'),
    () => translate(rest, SCORING, '', CHAT),
  );
  const score = (given: object): Promise<Score> =>
    ask(
      'model.score',
      { request: plain({ ...given, options: settings }, 'score'), base },
      { signal },
    );
  const tokens =
    typeof scorable === 'string'
      ? { text: scorable }
      : isIds(scorable)
        ? { ids: idsOf(scorable) }
        : undefined;
  if (!tokens)
    return score({
      conversation: conversation(scorable, written),
      generation: generation === undefined ? false : boolean(generation, 'generation'),
    });
  const [extra] =
    Object.entries({ generation, ...written }).find(([, value]) => value !== undefined) ?? [];
  if (extra !== undefined)
    throw badOption(
      extra,
      'messages to score, which a template writes',
      'text' in tokens ? 'a text' : 'token ids',
    );
  return score(tokens);
}

const isIds = (given: unknown): given is readonly number[] | Uint32Array =>
  given instanceof Uint32Array || (Array.isArray(given) && typeof given[0] === 'number');

const idsOf = (ids: readonly number[] | Uint32Array): number[] =>
  Array.from(ids, (id: unknown, index) => Number(naturalNumber(id, `ids[${index}]`)));

/** @internal Returns the text of token ids. */
export async function detokenized(
  ask: Asker,
  ids: readonly number[] | Uint32Array,
): Promise<string> {
  if (!Array.isArray(ids) && !(ids instanceof Uint32Array))
    throw badOption('ids', 'a list of token ids', ids);
  return ask('model.detokenize', { ids: idsOf(ids) });
}
