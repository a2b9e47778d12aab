/** Rows of training data that are given as objects: they become JSON lines, which are read as those of a file are. */
import type { ChatMessage } from './asking.js';
import { brandOf } from '../protocol/brand.js';
import { aborted, badOption, escaped } from '../protocol/errors.js';
import type { TabtuneError } from '../protocol/errors.js';
import { wait } from '../protocol/wait.js';
import { isAddress } from './names.js';

/** A conversation, whose answers are learned. */
export interface ChatRow {
  /** The turns, in order. */
  messages: readonly ChatMessage[];
  /** Tools that the chat template describes to the model. */
  tools?: readonly object[] | undefined;
}
/** A completion to learn, after a prompt that is only read: two texts, or two lists of messages. */
export interface CompletionRow {
  /** Text or turns that are read and not learned. */
  prompt: string | readonly ChatMessage[];
  /** Text or turns to learn. */
  completion: string | readonly ChatMessage[];
}
/** A text that is learned whole. */
export interface TextRow {
  /** The text. */
  text: string;
}
/** An instruction and its answer, as in the Alpaca data. */
export interface InstructionRow {
  /** The task. */
  instruction: string;
  /** Subject of the task. */
  input?: string | undefined;
  /** The answer, which is learned. */
  output: string;
}
/** Token ids; of `labels` those that are −100 are not learned. */
export interface TokenRow {
  /** Ids of the tokens. */
  input_ids: readonly number[] | Uint32Array | Int32Array;
  /** For each token the id to learn, or −100. Default: all tokens are learned. */
  labels?: readonly number[] | Int32Array | undefined;
}
/** One row of training data; other keys are read if `columns` names them. */
export type DataRow = ChatRow | CompletionRow | TextRow | InstructionRow | TokenRow | object;

/** Number of lists and objects inside each other that the core reads. */
const DEPTH = 100;
/** Number of characters that are written before the page gets time for other work. */
const AT_ONCE = 1 << 20;
/** Keys by which an object is a row, whatever its other keys are. */
const ROW_KEYS = [
  'messages',
  'conversations',
  'prompt',
  'completion',
  'instruction',
  'input_ids',
  'chosen',
];
/** All keys that an object may have that is a file, an address, a mixture or a text with a name. */
const INPUT_KEYS = [
  ['text', 'name'],
  ['tokens', 'name'],
  ['files', 'weight'],
  ['name', 'size', 'read'],
  ['url', 'sha256', 'hub', 'token', 'quant', 'keepDownloads'],
];

/** How an entry of a list is read. */
type Kind = 'input' | 'row' | 'text' | 'either';

/** Tells if a text is probably the name of a file. */
const isFileName = (text: string): boolean =>
  /^\S+\.(txt|md|jsonl?|ndjson|csv|tsv|parquet|tokens|gz)$/i.test(text);

function kindOf(entry: unknown, path: string): Kind {
  if (typeof entry === 'string') {
    if (isAddress(entry)) return 'input';
    if (isFileName(entry))
      throw badOption(path, `a text, or an address such as './${entry}'`, entry);
    return 'text';
  }
  if (brandOf(entry) !== 'Object') return 'input';
  const keys = Object.keys(Object(entry) as object);
  if (keys.some((key) => ROW_KEYS.includes(key))) return 'row';
  const object = Object(entry) as object;
  if (
    ['read', 'getFile', 'getFileHandle'].some(
      (key) => typeof Reflect.get(object, key) === 'function',
    )
  )
    return 'input';
  // As in a file of rows, a text alone is one of them; with a name it is a file.
  if (keys.join() === 'text') return 'either';
  return INPUT_KEYS.some((known) => keys.every((key) => known.includes(key))) ? 'input' : 'row';
}

/** Returns whether the entries of a list of data are rows. A list that has rows and files is refused. */
export function areRows(list: readonly unknown[], path: string): boolean {
  let first: { kind: Kind; at: number } | undefined;
  for (const [at, entry] of list.entries()) {
    const kind = kindOf(entry, `${path}[${at}]`);
    if (kind === 'either') continue;
    first ??= { kind, at };
    if ((first.kind === 'input') !== (kind === 'input'))
      throw badOption(
        `${path}[${at}]`,
        first.kind === 'input'
          ? `a file or an address, as ${path}[${first.at}] is`
          : `a row or a text, as ${path}[${first.at}] is`,
        entry,
      );
  }
  return first?.kind !== 'input';
}

/** Keys and indices that lead from a row to a value in it. */
type Way = (string | number)[];

/** Returns a value as JSON. Methods `toJSON` are ignored: some libraries add them to the prototypes of lists and objects. */
function json(value: unknown, place: string, way: Way = []): string {
  const refused = (expected: string, found: unknown = value): TabtuneError => {
    const inside = way.map((key) => (typeof key === 'number' ? `[${key}]` : `.${escaped(key)}`));
    return badOption(`${place}${inside.join('')}`, expected, found);
  };
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'number') {
    if (Number.isFinite(value)) return String(value);
    throw refused('a finite number');
  }
  if (typeof value === 'string') {
    if (/\p{Surrogate}/u.test(value)) throw refused('text with whole characters');
    return JSON.stringify(value);
  }
  if (way.length > DEPTH) throw refused(`at most ${DEPTH} lists and objects in each other`, 'more');
  const inner = (key: string | number, item: unknown): string => {
    way.push(key);
    const text = json(item, place, way);
    way.pop();
    return text;
  };
  if (Array.isArray(value) || (ArrayBuffer.isView(value) && 'length' in value)) {
    const items = Array.from(value as ArrayLike<unknown>, (item, at) => inner(at, item));
    return `[${items.join(',')}]`;
  }
  if (brandOf(value) !== 'Object')
    throw refused('a text, a number, true, false, null, a list or a plain object');
  const fields = Object.entries(Object(value) as object)
    .filter(([, field]) => field !== undefined)
    .map(([key, field]) => `${JSON.stringify(key)}:${inner(key, field)}`);
  return `{${fields.join(',')}}`;
}

/** Writes rows as JSON lines. The page gets time for other work in between. */
export async function jsonLines(
  rows: readonly unknown[],
  path: string,
  signal: AbortSignal | undefined,
): Promise<Blob> {
  const parts: string[] = [];
  let text = '';
  for (const [at, row] of rows.entries()) {
    text += `${json(typeof row === 'string' ? { text: row } : row, `${path}[${at}]`)}\n`;
    if (text.length < AT_ONCE) continue;
    parts.push(text);
    text = '';
    await wait(0);
    if (signal?.aborted) throw aborted();
  }
  return new Blob([...parts, text]);
}
