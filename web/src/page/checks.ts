/**
 * Checks of options: known keys, and values of the right kind. Only the core knows which values are valid. Each check throws BAD_OPTION with the
 * path.
 */
import { unknownOption } from './nearest-name.js';
import { badOption, TabtuneError, withDetail } from '../protocol/errors.js';
import type { Kind, Kinds } from '../protocol/generated/kinds.js';

/** Checks a value and returns the value to put into the core's JSON. */
export type Check = (value: unknown, path: string) => unknown;
export type Checks = Record<string, Check>;

const numeric =
  (expected: string, test: (value: number) => boolean): Check =>
  (value, path) => {
    if (typeof value === 'number' && test(value)) return value;
    throw badOption(path, expected, value);
  };

export const positiveInteger = numeric('an integer >= 1', (v) => Number.isSafeInteger(v) && v >= 1);
export const twoOrMore = numeric('an integer >= 2', (v) => Number.isSafeInteger(v) && v >= 2);
export const naturalNumber = numeric('an integer >= 0', (v) => Number.isSafeInteger(v) && v >= 0);
export const positive = numeric('a finite number > 0', (v) => Number.isFinite(v) && v > 0);
export const notNegative = numeric('a finite number >= 0', (v) => Number.isFinite(v) && v >= 0);
/** Maximum number of rates in one preview. */
const MAX_POINTS = 100_000;
/** Returns the number of rates that a preview of `steps` steps contains, and its stride. */
export function planned(steps: unknown, stride: unknown = 1): { points: number; stride: number } {
  const [all, every] = allOf(
    () => Number(positiveInteger(steps, 'steps')),
    () => Number(positiveInteger(stride, 'stride')),
  );
  const points = Math.ceil(all / every);
  if (points > MAX_POINTS)
    throw badOption(
      'steps',
      `at most ${MAX_POINTS} rates; a stride of ${Math.ceil(all / MAX_POINTS)} gives so many`,
      all,
    );
  return { points, stride: every };
}
const integer = numeric('an integer', Number.isSafeInteger);
const finite = numeric('a finite number', Number.isFinite);

export const boolean: Check = (value, path) => {
  if (typeof value === 'boolean') return value;
  throw badOption(path, 'true or false', value);
};
export const string: Check = (value, path) => {
  if (typeof value === 'string') return value;
  throw badOption(path, 'a string', value);
};
export const oneOf =
  (...list: readonly (string | boolean)[]): Check =>
  (value, path) => {
    if (list.some((word) => word === value)) return value;
    throw badOption(
      path,
      `one of ${list.map((word) => (typeof word === 'string' ? `'${word}'` : String(word))).join(', ')}`,
      value,
    );
  };

const list =
  (item: Check): Check =>
  (value, path) => {
    if (!Array.isArray(value)) throw badOption(path, 'a list', value);
    return value.map((one: unknown, index) => item(one, `${path}[${index}]`));
  };
export const listOfStrings = list(string);
/** Accepts one value or a list of values. */
const some =
  (item: Check): Check =>
  (value, path) =>
    (Array.isArray(value) ? list(item) : item)(value, path);
/** Accepts an object of numbers; its keys are data and are not translated. */
const table: Check = (value, path) =>
  Object.fromEntries(
    Object.entries(objectOf(value, path)).map(([key, one]) => [key, finite(one, `${path}.${key}`)]),
  );

/** Accepts a number or the given alternative. */
const numberOr =
  (other: 'auto' | null): Check =>
  (value, path) => {
    if (value === other || (typeof value === 'number' && Number.isFinite(value))) return value;
    throw badOption(path, `a finite number or ${other === null ? 'null' : `'${other}'`}`, value);
  };

const OF_KIND = {
  count: naturalNumber,
  counts: some(naturalNumber),
  integer,
  number: finite,
  'number or auto': numberOr('auto'),
  'number or null': numberOr(null),
  boolean,
  string,
  names: some(string),
  list: listOfStrings,
  numbers: list(finite),
  table,
};
const ofKind = (kind: Kind): Check => (typeof kind === 'string' ? OF_KIND[kind] : oneOf(...kind));
/** Returns the checks for settings of the given kinds. */
export const ofKinds = (kinds: Kinds): Checks =>
  Object.fromEntries(Object.entries(kinds).map(([key, kind]) => [key, ofKind(kind)]));
/** Returns Rust's name of an option: `learningRate` becomes `learning_rate`. */
export const snake = (key: string): string =>
  key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

export function objectOf(value: unknown, path: string): object {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw badOption(path, 'an object', value);
}

/** Checks a value unless it is undefined. */
export const ifGiven = (value: unknown, check: Check, path: string): unknown =>
  value === undefined ? undefined : check(value, path);

/** Runs all checks and returns their results; several faults become one BAD_OPTION error with the path of the first and the refusals of all. */
export function allOf<T extends readonly unknown[]>(
  ...work: { readonly [K in keyof T]: () => T[K] }
): T {
  const faults: TabtuneError[] = [];
  const results = work.map((check) => {
    try {
      return check();
    } catch (thrown) {
      if (!(thrown instanceof TabtuneError) || thrown.code !== 'BAD_OPTION') throw thrown;
      return void faults.push(thrown);
    }
  });
  const [first, ...rest] = faults;
  // Each result has the type of its check, which a list that is mapped does not show.
  if (first === undefined) return results as unknown as T;
  if (rest.length === 0) throw first;
  const refusals = faults.flatMap(({ detail }) => detail.refusals ?? []);
  throw withDetail(first, { refusals }, faults.map(({ message }) => message).join(' '));
}

/** Runs all checks like `allOf`, for their faults alone. */
export const together = (work: readonly (() => void)[]): void => void allOf(...work);

/**
 * Returns the given options under Rust's names, without a prototype. An unknown key is an error; an undefined value is omitted. `others` are further
 * names that the caller may have meant.
 */
export function translate(
  given: object,
  checks: Checks,
  path: string,
  others: readonly string[] = [],
): Record<string, unknown> {
  const result = Object.create(null) as Record<string, unknown>;
  const read =
    ([key, value]: [string, unknown]) =>
    (): void => {
      const at = path === '' ? key : `${path}.${key}`;
      const check = Object.hasOwn(checks, key) ? checks[key] : undefined;
      if (check === undefined) throw unknownOption(at, key, [...Object.keys(checks), ...others]);
      if (value !== undefined) result[snake(key)] = check(value, at);
    };
  together(Object.entries(objectOf(given, path === '' ? 'options' : path)).map(read));
  return result;
}

/** Refuses the keys of an object that are not `known`; `others` are further names that the caller may have meant. */
export const refuseUnknown = (
  given: object,
  known: readonly string[],
  others: readonly string[] = [],
  path = '',
): void =>
  together(
    Object.keys(given)
      .filter((key) => !known.includes(key))
      .map((key) => () => {
        throw unknownOption(`${path}${key}`, key, [...others, ...known]);
      }),
  );
