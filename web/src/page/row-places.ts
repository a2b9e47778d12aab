/** Places of rows that came in lists: the caller knows their indices, and the core the lines of the file that they were written to. */
import { TabtuneError, withDetail } from '../protocol/errors.js';
import type { DataSpec } from '../protocol/protocol.js';
import type { Refusal } from '../protocol/reports.js';

/** Paths of the lists whose rows are in files of these data, by the names of the files. */
const lists = new WeakMap<object, ReadonlyMap<string, string>>();

/** Records which files of the data have the rows of lists. */
export const keepLists = (data: DataSpec, paths: ReadonlyMap<string, string>): void =>
  void lists.set(data, paths);

/**
 * Returns the error of a request with data. If all that is wrong are rows that came in lists, they are named by their indices in place of the lines of
 * a file that the caller does not know.
 */
export function withIndices(thrown: unknown, ask: unknown): unknown {
  const data: unknown = Reflect.get(Object(ask) as object, 'data');
  const paths = lists.get(Object(data) as object);
  if (!paths || !(thrown instanceof TabtuneError)) return thrown;
  const refusals = (thrown.detail.refusals ?? []) as Refusal[];
  if (refusals.length === 0 || !refusals.every(({ artifact }) => paths.has(artifact)))
    return thrown;
  /** Replaces the lines in a text, which names a file only where it changes. */
  const indexed = (text: string, file = ''): string => {
    let list = paths.get(file);
    const place = (_: string, name: string | undefined, line: string): string => {
      list = paths.get(name ?? '') ?? list;
      const before = name === undefined || paths.has(name) ? '' : `${name}: `;
      return `${before}${list ?? ''}[${Number(line) - 1}]`;
    };
    return text.replace(/(?:(\S+): )?\bline (\d+)(?=[:,]|$)/g, place);
  };
  const named = refusals.map((refusal) => ({
    ...refusal,
    subject: refusal.subject && indexed(refusal.subject, refusal.artifact),
  }));
  const [path] = (named[0]?.subject ?? '').split(',');
  const message = indexed(thrown.message, refusals[0]?.artifact);
  return withDetail(thrown, { path, refusal: named[0], refusals: named }, message);
}
