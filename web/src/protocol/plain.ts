/** Plain data: what crosses between page and worker. */
import { badOption } from './errors.js';

/** Settings, options or a document, under Rust's names. */
export type Values = Readonly<Record<string, unknown>>;

/** Number of lists and objects inside each other that the core reads. */
const DEPTH = 100;

/**
 * Copies the caller's object as JSON would have it: lists, and objects of their own fields, with `null` for numbers that JSON lacks. Methods `toJSON`
 * are ignored: some libraries add them to the prototypes of lists and objects, which would then be replaced by their results.
 */
export const plain = (value: object, path: string): Values => copied(value, path, 0) as Values;

function copied(value: unknown, path: string, depth: number): unknown {
  if (depth > DEPTH)
    throw badOption(path, `at most ${DEPTH} lists and objects in each other`, 'more');
  const inner = (item: unknown): unknown => copied(item, path, depth + 1);
  if (Array.isArray(value)) return value.map(inner);
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(
      Object.entries(value)
        .filter(([, field]) => field !== undefined && typeof field !== 'function')
        .map(([key, field]) => [key, inner(field)]),
    );
  if (typeof value === 'bigint') throw badOption(path, 'a number', `${value}n`);
  if (typeof value === 'string' && /\p{Surrogate}/u.test(value))
    throw badOption(path, 'text with whole characters', value);
  const known = typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value);
  return known ? value : null;
}
