/** JSON of plain data. */

/**
 * As `JSON.stringify` of plain values, but for methods called `toJSON`: libraries put some on the prototypes of lists and objects, which then
 * stand for what they hold.
 */
export function json(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item: unknown) => json(item)).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const fields = Object.entries(value).filter(([, field]) => field !== undefined && typeof field !== 'function');
  return `{${fields.map(([key, field]) => `${JSON.stringify(key)}:${json(field)}`).join()}}`;
}
