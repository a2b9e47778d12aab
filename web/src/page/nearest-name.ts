/** Errors of options that a call does not have, with the known name that each is most like. */
import { badOption, invalidOption, shown } from '../protocol/errors.js';
import type { TabtuneError } from '../protocol/errors.js';

/** Maximum length of a name that is compared: the time grows with the product of both lengths. */
const COMPARED = 64;

/** Returns a name as it is compared: `learning_rate`, `learning-rate` and `learningrate` are the same. */
const folded = (name: string): string => name.replace(/[_\s-]/g, '').toLowerCase();

/** Returns the first letters of the words in a name: `lr` for `learningRate`. */
const initials = (name: string): string =>
  `${name.charAt(0)}${name.replace(/[^A-Z]/g, '')}`.toLowerCase();

/** Counts the letters to insert, delete, replace or exchange with their neighbour that make one text of another (optimal string alignment). */
function distance(from: string, to: string): number {
  let before: number[] = [];
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let i = 0; i < from.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < to.length; j++) {
      const cost = (of: number[], at: number): number => of[at] ?? Infinity;
      const changed = from[i] === to[j] ? 0 : 1;
      const exchanged = i > 0 && from[i] === to[j - 1] && from[i - 1] === to[j];
      next.push(
        Math.min(
          cost(row, j) + changed,
          cost(row, j + 1) + 1,
          cost(next, j) + 1,
          exchanged ? cost(before, j - 1) + 1 : Infinity,
        ),
      );
    }
    [before, row] = [row, next];
  }
  return row[to.length] ?? Infinity;
}

/** Returns the known name that a name was probably meant to be: at most a third of its letters differ, or it has the initials of one. */
function nearest(name: string, known: readonly string[]): string | undefined {
  if (name.length > COMPARED) return undefined;
  const given = folded(name);
  let [best, least] = [undefined as string | undefined, Math.floor(given.length / 3) + 1];
  for (const each of known) {
    const away = distance(given, folded(each));
    if (away < least) [best, least] = [each, away];
  }
  return best ?? (given.length > 1 ? known.find((each) => initials(each) === given) : undefined);
}

/** @internal Returns the error of an option at `path` that is none of the `known` ones. */
export function unknownOption(path: string, key: string, known: readonly string[]): TabtuneError {
  const near = nearest(key, known);
  return near === undefined
    ? badOption(path, `one of ${known.join(', ')}`, key)
    : invalidOption(path, 'a known name', shown(key), `did you mean ${near}?`);
}
