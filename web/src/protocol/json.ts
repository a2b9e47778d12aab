/** JSON of plain data. */

/**
 * Works like `JSON.stringify` for plain values, but ignores `toJSON` methods: some libraries add them to the prototypes of lists and objects, which
 * would then be replaced by their results.
 */
export function json(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item: unknown) => json(item)).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const fields = Object.entries(value).filter(
    ([, field]) => field !== undefined && typeof field !== 'function',
  );
  return `{${fields.map(([key, field]) => `${JSON.stringify(key)}:${json(field)}`).join()}}`;
}
