/** Checks of call arguments: options with known names, a valid signal, functions that may throw. */
import { allOf, objectOf, refuseUnknown } from './checks.js';
import { brandOf } from '../protocol/brand.js';
import { aborted, badOption } from '../protocol/errors.js';

/** Checks that `signal` is undefined or an `AbortSignal`. */
function isSignal(signal: unknown): void {
  if (signal !== undefined && brandOf(signal) !== 'AbortSignal')
    throw badOption('signal', 'an AbortSignal', signal);
}

/** @internal Checks that `signal` is undefined or an `AbortSignal` that has not been aborted. */
export function listening(signal: unknown, what: string): void {
  isSignal(signal);
  if (Reflect.get(Object(signal), 'aborted') === true) throw aborted(what);
}

/** @internal Checks that a value is undefined or a function. */
export function callable(given: unknown, path: string): void {
  if (given !== undefined && typeof given !== 'function')
    throw badOption(path, 'a function', given);
}

/**
 * @internal Returns a copy of an object without a prototype, so that a missing key is not found on `Object.prototype`, which some libraries extend.
 */
export const ownFields = <T extends object>(given: T): T =>
  Object.assign(Object.create(null) as T, given);

/** @internal Checks and copies the options of `what`: an object whose signal has not been aborted. If `keys` is given, no other keys are allowed. */
export function optionsOf<T extends object>(
  all: T,
  what: string,
  keys?: readonly (keyof T & string)[],
): T {
  objectOf(all, 'options');
  const given = ownFields(all);
  const signal: unknown = Reflect.get(given, 'signal');
  allOf(
    () => keys && refuseUnknown(given, keys),
    () => callable(Reflect.get(given, 'onProgress'), 'onProgress'),
    () => callable(Reflect.get(given, 'onWarning'), 'onWarning'),
    () => isSignal(signal),
  );
  listening(signal, what);
  return given;
}

/** @internal Calls a function of the caller. If it throws, the error is reported like any other error of the page and has no effect here. */
export function notify<T>(listener: ((value: T) => void) | undefined, value: T): void {
  try {
    listener?.(value);
  } catch (thrown) {
    if (typeof reportError === 'function') reportError(thrown);
    else console.error(thrown);
  }
}
