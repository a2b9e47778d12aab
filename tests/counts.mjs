// Results of tests: the numbers that passed and failed. And jobs of which some run at a time.
import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** One job more than there are cores, because jobs sometimes wait for their device, a Rust test a quarter of its time. */
export const AT_ONCE = availableParallelism() + 1;

/** @typedef {{ passed: number, failed: number, skipped?: number }} Result */

/** Adds up results. @param {Result[]} results @returns {Result} */
export const add = (...results) =>
  results.reduce(
    (sum, each) => ({
      passed: sum.passed + each.passed,
      failed: sum.failed + each.failed,
      skipped: (sum.skipped ?? 0) + (each.skipped ?? 0),
    }),
    { passed: 0, failed: 0, skipped: 0 },
  );

/** Returns a result in words. @param {Result} result */
export const inWords = ({ passed, failed, skipped = 0 }) =>
  `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;

/**
 * Counts tests that ended with an error but without a failed one (for example because they did not compile) as one failure.
 * @param {Result} result @param {number} code @returns {Result}
 */
export const settle = (result, code) =>
  code !== 0 && result.failed === 0 ? { ...result, failed: 1 } : result;

/**
 * Returns the result in a report that a program wrote as JSON; one failure if it wrote none.
 * @param {string} path @param {number} code @param {(report: any) => Result} read @returns {Result}
 */
export const reported = (path, code, read) =>
  existsSync(path)
    ? settle(read(JSON.parse(readFileSync(path, 'utf8'))), code)
    : { passed: 0, failed: 1 };

/**
 * Runs jobs in their order, so many at a time, and returns their results; `ended` is called with the number of those that have ended.
 * @template T
 * @param {number} limit @param {(() => Promise<T>)[]} jobs @param {(count: number) => void} [ended] @returns {Promise<T[]>}
 */
export async function atOnce(limit, jobs, ended) {
  /** @type {T[]} */
  const results = [];
  const queue = jobs.values();
  const work = async () => {
    for (const job of queue) {
      results.push(await job());
      ended?.(results.length);
    }
  };
  await Promise.all(Array.from({ length: limit }, work));
  return results;
}
