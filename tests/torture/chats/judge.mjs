// Judges a training on a conversation against the result of transformers.

const BOTH = 'both refuse';
const NO_DAY = 'refused: the template writes the day, and there is none';
const UNJUDGED = 'not judged: no marks in the template, and no place where an answer begins';
const DIFFERS = 'DIFFERS';
const REFUSED = 'REFUSED by tabtune alone';
const TAKEN = 'REFUSED by transformers alone';

/** The kinds of results in the order of the table; those of cases.py are identified by their first words. */
export const ORDER = [
  'equal',
  'equal to the end token: the line end after it is not learned',
  'equal after the generation prompt: the header before the answer is not learned',
  'equal from the generation prompt to the end token',
  "equal from where an answer's own text begins: what the template writes before it is not learned",
  'equal to the template for training, which writes the token that ends the last turn',
  "each answer from the generation prompt to its end token: the marks leave out what the prompt lacks, or the token that waits for a tool's result",
  'each answer from the generation prompt to the end of its turn: the template has no marks',
  'one example for each answer: the template rewrites earlier turns',
  'contents of parts as one text: the template reads texts',
  BOTH,
  NO_DAY,
  UNJUDGED,
  DIFFERS,
  REFUSED,
  TAKEN,
];

/**
 * Returns the kind of a case, and whether a rule explains it. `rules` are the peer's digests with the names of their rules, `error` is its refusal.
 * @param {{ rules: Record<string, string> | null, error?: string, clock?: boolean }} asked @param {{ digest?: string, refusal?: string }} found
 * @param {boolean} dated
 */
export function judged({ rules, error, clock }, { digest, refusal }, dated) {
  if (rules === null)
    return refusal
      ? { kind: BOTH, explained: true }
      : { kind: TAKEN, explained: false, detail: error };
  if (refusal) {
    const noDay = clock && !dated && refusal.includes('is not callable');
    return noDay
      ? { kind: NO_DAY, explained: true }
      : { kind: REFUSED, explained: false, detail: refusal };
  }
  if (Object.keys(rules).length === 0) return { kind: UNJUDGED, explained: true };
  return digest !== undefined && digest in rules
    ? { kind: rules[digest], explained: true }
    : { kind: DIFFERS, explained: false };
}
