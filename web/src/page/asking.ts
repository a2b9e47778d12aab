/** What can be asked of weights that are there: an answer in a conversation, the probabilities of a text, the text of ids. */
import { naturalNumber, objectOf, ofKinds, translate, truth } from './checks.js';
import type { Check, Checks } from './checks.js';
import { badOption } from '../protocol/errors.js';
import { json } from '../protocol/json.js';
import { SCORE } from '../protocol/generated/kinds.js';
import type { SampleOptions, ScoreSettings } from '../protocol/generated/settings.js';
import type { Ask, Reply, Tag } from '../protocol/protocol.js';
import type { SampledToken, SampleEnd, Score } from '../protocol/reports.js';
import { optionsOf } from './given.js';
import type { LinkOptions } from './link.js';
import { sampleJson } from './options.js';
import { streamed } from './sampling.js';

/** A message as chat templates read it; what else a template reads of it may be there too. */
export interface ChatMessage {
  role: string;
  /** A text, or texts that are joined. */
  content?: string | readonly { type?: 'text'; text: string }[] | null;
  [key: string]: unknown;
}

/** What the template reads beside the messages. */
export interface TemplateOptions {
  /** Tools that the template tells the model of. */
  tools?: readonly object[] | undefined;
  /** Documents for templates that read some. */
  documents?: readonly object[] | undefined;
  /** Names of the template's own, such as `enable_thinking`. */
  chatTemplateKwargs?: Readonly<Record<string, unknown>> | undefined;
}

export interface ChatOptions extends SampleOptions, TemplateOptions {
  signal?: AbortSignal | undefined;
}

export interface ScoreOptions extends ScoreSettings, TemplateOptions {
  /** Of messages: the template opens the assistant's turn at their end. false */
  generation?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

/** One token of a score. */
export type ScoredToken = Score['tokens'][number];

/** @internal Asks the worker that has the weights. */
export type Asker = <T extends Tag>(tag: T, ask: Ask<T>, options?: LinkOptions) => Promise<Reply<T>>;

const list: Check = (value, path) => {
  if (Array.isArray(value)) return value.map((item: unknown, index) => objectOf(item, `${path}[${index}]`));
  throw badOption(path, 'a list of objects', value);
};
const TEMPLATE: Checks = { tools: list, documents: list, chatTemplateKwargs: objectOf };
const SCORING = ofKinds(SCORE);

/** The conversation as the core reads it. */
function conversation(messages: unknown, { tools, documents, chatTemplateKwargs }: TemplateOptions): Record<string, unknown> {
  const given = list(messages, 'messages');
  return { messages: given, ...translate({ tools, documents, chatTemplateKwargs }, TEMPLATE, '') };
}

/** @internal Tokens of an answer, as `trainer.sample` gives those of a text. */
export function chatted(ask: Asker, messages: readonly ChatMessage[], options: ChatOptions): AsyncGenerator<SampledToken, SampleEnd | undefined> {
  const { signal, tools, documents, chatTemplateKwargs, ...sampling } = optionsOf(options, 'the answer');
  const request = { conversation: json(conversation(messages, { tools, documents, chatTemplateKwargs })), options: sampleJson(sampling) };
  return streamed((more) => ask('model.chat', request, more), signal);
}

/** @internal */
export async function scored(ask: Asker, of: string | readonly ChatMessage[], options: ScoreOptions): Promise<Score> {
  const { signal, generation, tools, documents, chatTemplateKwargs, ...rest } = optionsOf(options, 'the score');
  const written = { tools, documents, chatTemplateKwargs };
  const settings = translate(rest, SCORING, '');
  if (typeof of === 'string') {
    const [extra] = Object.entries({ generation, ...written }).find(([, value]) => value !== undefined) ?? [];
    if (extra !== undefined) throw badOption(extra, 'messages to score, which a template writes', 'a text');
    return ask('model.score', { request: json({ text: of, options: settings }) }, { signal });
  }
  const opens = generation === undefined ? false : truth(generation, 'generation');
  return ask('model.score', { request: json({ conversation: conversation(of, written), generation: opens, options: settings }) }, { signal });
}

/** @internal */
export async function detokenized(ask: Asker, ids: readonly number[] | Uint32Array): Promise<string> {
  if (!Array.isArray(ids) && !(ids instanceof Uint32Array)) throw badOption('ids', 'a list of token ids', ids);
  return ask('model.detokenize', { ids: Array.from(ids, (id: unknown, index) => Number(naturalNumber(id, `ids[${index}]`))) });
}
