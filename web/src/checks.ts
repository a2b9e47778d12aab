/** Checks of single option values; each returns what goes into Rust's JSON or throws BAD_OPTION with the path. */
import { badOption } from './errors.js';

export type Check = (value: unknown, path: string) => unknown;
export type Checks = Record<string, Check>;

const numeric =
  (expected: string, test: (value: number) => boolean): Check =>
  (value, path) => {
    if (typeof value === 'number' && test(value)) return value;
    throw badOption(path, expected, value);
  };

export const positiveInteger = numeric('an integer >= 1', (v) => Number.isSafeInteger(v) && v >= 1);
export const naturalNumber = numeric('an integer >= 0', (v) => Number.isSafeInteger(v) && v >= 0);
/** A step, or -1 for none. */
export const startStep = numeric('an integer >= -1', (v) => Number.isSafeInteger(v) && v >= -1);
export const positive = numeric('a finite number > 0', (v) => Number.isFinite(v) && v > 0);
export const notNegative = numeric('a finite number >= 0', (v) => Number.isFinite(v) && v >= 0);
export const negative = numeric('a finite number < 0', (v) => Number.isFinite(v) && v < 0);
export const belowOne = numeric('a number from 0 to below 1', (v) => v >= 0 && v < 1);
export const upToOne = numeric('a number above 0, at most 1', (v) => v > 0 && v <= 1);

export const truth: Check = (value, path) => {
  if (typeof value === 'boolean') return value;
  throw badOption(path, 'true or false', value);
};
export const words: Check = (value, path) => {
  if (typeof value === 'string') return value;
  throw badOption(path, 'a string', value);
};
export const among =
  (...list: string[]): Check =>
  (value, path) => {
    if (typeof value === 'string' && list.includes(value)) return value;
    throw badOption(path, `one of ${list.map((word) => `'${word}'`).join(', ')}`, value);
  };

/** Rust's name of an option: `learningRate` is `learning_rate`. */
export const snake = (key: string): string => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

export function objectOf(value: unknown, path: string): object {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw badOption(path, 'an object', value);
}

/** The given options under Rust's names; an unknown key is an error, an undefined value is absent. */
export function translate(given: object, checks: Checks, path: string): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(given)) {
    const at = path === '' ? key : `${path}.${key}`;
    const check = Object.hasOwn(checks, key) ? checks[key] : undefined;
    if (check === undefined) throw badOption(at, `one of ${Object.keys(checks).join(', ')}`, key);
    if (value !== undefined) result[snake(key)] = check(value, at);
  }
  return result;
}

/** An object told apart by `type`, each type with keys of its own. */
export const byType =
  (types: Record<string, Checks>): Check =>
  (value, path) => {
    const { type, ...rest } = { type: undefined, ...objectOf(value, path) };
    const kind = among(...Object.keys(types))(type, `${path}.type`);
    return { type: kind, ...translate(rest, types[String(kind)] ?? {}, path) };
  };
