/** The turns that a model's chat template writes, found by letting it write probes, and the same as a template of Ollama, which reads Go's and not Jinja. */
import type { ChatMessage, Trainer } from 'tabtune';

/** The weights that are asked, for the text that their template writes. */
export type Asked = Pick<Trainer, 'score' | 'detokenize'>;

/** Text before and after a message. */
type Around = readonly [before: string, after: string];

export interface Turns {
  /** Text before the first turn of a conversation without a system message. */
  start: string;
  user: Around;
  assistant: Around;
  /** Text at the end, which opens the answer. */
  opening: string;
  /** Text around a system message: in place of `start`, or in the first or last turn of the user before its message. Absent if the template takes none. */
  system?: { at: 'start' | 'first' | 'last'; around: Around } | undefined;
}

const [SYSTEM, ASKED, ANSWERED, ASKED_NEXT] = ['Be brief.', 'Two and two?', 'Four.', 'And three?'];
/** A message of a conversation in text alone. */
export type Said = Pick<ChatMessage, 'role'> & { content: string };
const system = { role: 'system', content: SYSTEM };
const user = (content: string): Said => ({ role: 'user', content });
const assistant = (content: string): Said => ({ role: 'assistant', content });
const TWO = [user(ASKED), assistant(ANSWERED)];
const THREE = [...TWO, user(ASKED_NEXT)];
/** Not part of the probes: what was found has to hold for it too. */
const FIVE = [...THREE, assistant('Seven.'), user('And the rest?')];

/** Returns the parts between texts that occur once each and in this order; `undefined` if they do not. */
function parts(text: string, ...between: string[]): string[] | undefined {
  const found: string[] = [];
  let rest = text;
  for (const each of between) {
    const [before, after, ...more] = rest.split(each);
    if (before === undefined || after === undefined || more.length > 0) return undefined;
    found.push(before);
    rest = after;
  }
  return [...found, rest];
}

const without = (text: string, end: string): string | undefined =>
  text.endsWith(end) ? text.slice(0, text.length - end.length) : undefined;
const after = (text: string, begin: string): string | undefined =>
  text.startsWith(begin) ? text.slice(begin.length) : undefined;

/** Returns the conversation as the turns write it, with the answer opened. */
export function written(turns: Turns, said: readonly Said[]): string {
  const asked = said.filter(({ role }) => role === 'user');
  const instruction = said.find(({ role }) => role === 'system')?.content;
  const { at, around: [before, behind] = ['', ''] } = turns.system ?? {};
  const inserted = instruction === undefined || !at ? '' : before + instruction + behind;
  const place = { start: undefined, first: asked.at(0), last: asked.at(-1) }[at ?? 'start'];
  const begin = at === 'start' && inserted !== '' ? inserted : turns.start;
  const body = said.map((message) => {
    if (message.role === 'system') return '';
    const [open, close] = message.role === 'user' ? turns.user : turns.assistant;
    return `${open}${message === place ? inserted : ''}${message.content}${close}`;
  });
  return begin + body.join('') + turns.opening;
}

/** Splits the texts of probes into turns: those of one message and of two, and those of three with the answer opened, also after a system message. */
function turnsOf(one: string, two: string, three: string, whole?: string): Turns | undefined {
  const closed = parts(one, ASKED)?.[1];
  const answered = parts(two, ASKED, ANSWERED)?.[2];
  const [begin, middle, next, end] = parts(three, ASKED, ANSWERED, ASKED_NEXT) ?? [];
  if (closed === undefined || answered === undefined) return undefined;
  const before = after(next ?? '', answered);
  const start = without(begin ?? '', before ?? '\0');
  const [answer, opening] = [after(middle ?? '', closed), after(end ?? '', closed)];
  if (before === undefined || start === undefined) return undefined;
  if (answer === undefined || opening === undefined) return undefined;
  const turns: Turns = { start, user: [before, closed], assistant: [answer, answered], opening };
  const [lead, behind] = parts(whole ?? '', SYSTEM) ?? [];
  if (lead === undefined || behind === undefined) return whole === undefined ? turns : undefined;
  const [follows] = parts(behind, behind.includes(ASKED) ? ASKED : ASKED_NEXT) ?? [];
  if (follows === undefined) return undefined;
  const own = without(follows, before);
  const places: Turns['system'][] = [
    ...(own === undefined ? [] : [{ at: 'start', around: [lead, own] } as const]),
    ...[
      ['first', start + before] as const,
      ['last', start + before + ASKED + closed + answer + ANSWERED + answered + before] as const,
    ].flatMap(([at, ahead]) => {
      const opened = after(lead, ahead);
      return opened === undefined ? [] : [{ at, around: [opened, follows] } as const];
    }),
  ];
  return places
    .map((place) => ({ ...turns, system: place }))
    .find((each) => written(each, [system, ...THREE]) === whole);
}

/**
 * Returns the turns of a model's chat template; `undefined` if it writes more than turns (such as the date), or if its text is read as other tokens
 * than those of the template.
 */
export async function chatTurns(asked: Asked): Promise<Turns | undefined> {
  const idsOf = async (said: string | Said[], generation?: boolean): Promise<number[]> =>
    (await asked.score(said, { generation })).tokens.map(({ id }) => id);
  const [first] = await idsOf('a');
  const render = async (said: Said[], generation = true): Promise<string> => {
    const ids = await idsOf(said, generation);
    // A reader puts the beginning-of-text there itself.
    return asked.detokenize(ids[0] === first ? ids.slice(1) : ids);
  };
  const refusal = (): undefined => undefined;
  try {
    const whole = await render([system, ...THREE]).catch(refusal);
    const turns = turnsOf(
      await render([user(ASKED)], false),
      await render(TWO, false),
      await render(THREE),
      whole,
    );
    if (!turns) return undefined;
    const long = turns.system ? [system, ...FIVE] : FIVE;
    const text = written(turns, long);
    const same =
      String(await idsOf(text)) === String(await idsOf(long, true)) &&
      !text.includes(String(new Date().getFullYear()));
    return same ? turns : undefined;
  } catch {
    // Some templates write no such conversation.
    return undefined;
  }
}

/** Returns the marks that end an answer: `ends` of a text, and the one that the template writes after an answer. */
export function stopsOf(turns: Turns | undefined, ends: readonly string[]): string[] {
  const mark = /^\s*(<[^<>\s]+>|\[[^[\]\s]+\])/.exec(turns?.assistant[1] ?? '')?.[1];
  return [...new Set([...ends, ...(mark === undefined ? [] : [mark])])].filter(Boolean);
}

/** Returns the turns as a template of Go for Ollama; `undefined` if a text of them cannot be written in one. */
export function goTemplate({ start, user, assistant, opening, system }: Turns): string | undefined {
  const { at, around } = system ?? {};
  const [before = '', behind = ''] = around ?? [];
  const texts = [start, ...user, ...assistant, opening, before, behind];
  if (texts.some((text) => /\{\{|\{$|"""/.test(text))) return undefined;
  const begin =
    at === 'start'
      ? `{{ if .System }}${before}{{ .System }}${behind}${start && `{{ else }}${start}`}{{ end }}`
      : start;
  const inside = {
    start: '',
    first: `{{ if $system }}${before}{{ $system }}${behind}{{ $system = "" }}{{ end }}`,
    last: `{{ if and $system (eq (len (slice $.Messages $i)) 1) }}${before}{{ $system }}${behind}{{ end }}`,
  }[at ?? 'start'];
  return [
    at === 'first' || at === 'last' ? '{{ $system := .System }}' : '',
    begin,
    '{{ range $i, $_ := .Messages }}',
    `{{ if eq .Role "user" }}${user[0]}${inside}{{ .Content }}${user[1]}`,
    `{{ else if eq .Role "assistant" }}${assistant[0]}{{ .Content }}${assistant[1]}`,
    `{{ end }}{{ end }}${opening}`,
  ].join('');
}
