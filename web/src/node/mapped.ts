/** Messages between a page and a worker that are not of one browser. */

/** Returns a value in which every part that is no list and no plain object is replaced. */
export function mapped(value: unknown, replace: (part: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map((part) => mapped(part, replace));
  if (
    typeof value === 'object' &&
    value !== null &&
    Object.getPrototypeOf(value) === Object.prototype &&
    !isHandle(value)
  ) {
    return Object.fromEntries(
      Object.entries(value).map(([key, part]) => [key, mapped(part, replace)]),
    );
  }
  return replace(value);
}

/** Returns whether a value is the handle of a file or a folder, or a stand-in for one. */
export const isHandle = (value: object): boolean =>
  ['directory', 'file'].includes(String(Reflect.get(value, 'kind')));
