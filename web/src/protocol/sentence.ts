/**
 * Sentences of errors and warnings. The table is that of crate/src/error/codes.rs, and the rules by which a sentence is filled are those of
 * crate/src/error/sentence.rs.
 */
import { CODES } from './generated/codes.js';
import type { CodeRow } from './generated/codes.js';

/** Values of one occurrence of a code. A hint takes the place of what the table says to do. */
export interface Values {
  /** File that it is about, which is named first. */
  artifact?: string | undefined;
  subject?: string | number | undefined;
  expected?: string | number | undefined;
  found?: string | number | undefined;
  hint?: string | undefined;
}

const rows = new Map<string, CodeRow>(Object.entries(CODES));
let settings: ReadonlySet<string> = new Set();

/** Adds the codes that only one script of the package raises. */
export function addCodes(more: Readonly<Record<string, CodeRow>>): void {
  for (const [code, row] of Object.entries(more)) rows.set(code, row);
}

/** Adds the sentences of the core, each with what to do, and the names of settings that they may have. */
export function addSentences(
  more: Readonly<Record<string, readonly (string | undefined)[]>>,
  names: string,
): void {
  for (const [code, [text = '', hint]] of Object.entries(more))
    rows.set(code, [undefined, text, hint]);
  settings = new Set(names.split(' '));
}

/** Sentence of a code that the table lacks. */
const OTHER: CodeRow = [
  undefined,
  '[{subject}: ]the file was refused[: expected {expected}, found {found}|: {found}].',
];

/** Codes whose values and sentences name settings. */
const OF_SETTINGS = /^(adapter|config|data|optim|schedule)\./;

const valueOf = (values: Values, place: string): string => {
  const name = place.replace('?', '');
  const value =
    name === 'artifact'
      ? values.artifact
      : name === 'subject'
        ? values.subject
        : name === 'expected'
          ? values.expected
          : values.found;
  return value === undefined ? '' : String(value);
};

/** Appends text of a sentence, which ends with one full stop even if its last value has one. */
const append = (out: string, text: string): string =>
  out + (out.endsWith('.') ? text.replace(/^\./, '') : text);

/** Appends a text with its places filled. */
function fill(out: string, text: string, values: Values): string {
  for (const [part] of text.matchAll(/\[[^\]]*\]|\{[^}]*\}|[^[{]+/g)) {
    if (part.startsWith('[')) {
      const hasValues = (one: string): boolean =>
        [...one.matchAll(/\{([^}]*)\}/g)].every(([, place = '']) => valueOf(values, place) !== '');
      out = fill(out, part.slice(1, -1).split('|').find(hasValues) ?? '', values);
    } else if (!part.startsWith('{')) out = append(out, part);
    else if (!part.startsWith('{?')) out += valueOf(values, part.slice(1, -1)) || '?';
  }
  return out;
}

/** Returns what to do as a sentence. */
function advice(hint: string): string {
  const text = hint.trim();
  if (text === '') return '';
  const word = text.split(/[ ,:]/, 1)[0] ?? '';
  const begun = /^[a-z]*$/.test(word) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
  return ` ${begun}${/[.!?…]$/.test(begun) ? '' : '.'}`;
}

const camel = (text: string): string =>
  text.replace(/\b[a-z0-9]+(_[a-z0-9]+)+\b/g, (name) =>
    settings.has(name)
      ? name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
      : name,
  );

/** Returns the class of a code; one of the core has none here. */
export const classOf = (code: string): CodeRow[0] => rows.get(code)?.[0];

/** Returns what people read about an occurrence of a code: the file, what happened, and what to do. */
export function sentence(code: string, values: Values): string {
  const [, text, hint = ''] = rows.get(code) ?? OTHER;
  const { artifact = '' } = values;
  const named = text.includes('artifact}') || artifact === '' || artifact === values.subject;
  const said =
    fill(named ? '' : `${artifact}: `, text, values) +
    advice(values.hint ?? fill('', hint, values));
  return OF_SETTINGS.test(code) ? camel(said) : said;
}

/** Code and values as the core writes them; values may have such a text in them. */
const ENCODED = /\uFDD0([^\uFDD0\uFDD2]*)\uFDD2/g;

/** Returns a text of the core with the sentences of the codes and values in it. */
export function spoken(text: string): string {
  let said = text;
  for (;;) {
    const next = said.replace(ENCODED, (_, all: string) => {
      const [code = '', artifact, subject, expected, found, hint] = all.split('\uFDD1');
      return sentence(code, { artifact, subject, expected, found, hint });
    });
    if (next === said) return said;
    said = next;
  }
}

/** Returns a report of the core with the sentences of all its texts. */
export function spokenIn(value: unknown): unknown {
  if (typeof value === 'string') return spoken(value);
  if (Array.isArray(value)) return value.map(spokenIn);
  if (
    typeof value !== 'object' ||
    value === null ||
    Object.getPrototypeOf(value) !== Object.prototype
  )
    return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, spokenIn(inner)]));
}
