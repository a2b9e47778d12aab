/** Checks what a caller gives to a call: options of known names, a signal that is one, functions that may throw. */
import { objectOf } from './checks.js';
import { brandOf } from '../protocol/brand.js';
import { aborted, badOption } from '../protocol/errors.js';

/** @internal An `AbortSignal` or nothing, that has not aborted. */
export function listening(signal: unknown, what: string): void {
  if (signal === undefined) return;
  if (brandOf(signal) !== 'AbortSignal') throw badOption('signal', 'an AbortSignal', signal);
  if (Reflect.get(Object(signal), 'aborted') === true) throw aborted(what);
}

/** @internal A function or nothing. */
export function callable(given: unknown, path: string): void {
  if (given !== undefined && typeof given !== 'function') throw badOption(path, 'a function', given);
}

/** @internal A copy of an object without a prototype: a key that is not there is not found on that of all objects, where libraries put some. */
export const own = <T extends object>(given: T): T => Object.assign(Object.create(null) as T, given);

/** @internal The options of `what`: an object, whose signal has not aborted. With `keys` no others may be in it. */
export function optionsOf<T extends object>(all: T, what: string, keys?: readonly (keyof T & string)[]): T {
  objectOf(all, 'options');
  const given = own(all);
  const extra = keys && Object.keys(given).find((key) => !keys.some((known) => known === key));
  if (extra !== undefined) throw badOption(extra, `one of ${keys?.join(', ') ?? ''}`, extra);
  callable(Reflect.get(given, 'onProgress'), 'onProgress');
  listening(Reflect.get(given, 'signal'), what);
  return given;
}

/** @internal Calls a function of the caller's. What it throws is reported as any error of the page is, and changes nothing here. */
export function tell<T>(listener: ((value: T) => void) | undefined, value: T): void {
  try {
    listener?.(value);
  } catch (thrown) {
    if (typeof reportError === 'function') reportError(thrown);
    else console.error(thrown);
  }
}
