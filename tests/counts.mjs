// Results of tests: the numbers that passed and failed. And jobs of which some run at a time.
import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** One job more than there are cores, because jobs sometimes wait for their device, a Rust test a quarter of its time. */
export const AT_ONCE = availableParallelism() + 1;

/** @typedef {{ passed: number, failed: number }} Result */

/** Adds up results. @param {Result[]} results @returns {Result} */
export const add = (...results) =>
  results.reduce((sum, each) => ({ passed: sum.passed + each.passed, failed: sum.failed + each.failed }), { passed: 0, failed: 0 });

/**
 * Counts tests that ended with an error but without a failed one (for example because they did not compile) as one failure.
 * @param {Result} result @param {number} code @returns {Result}
 */
export const settle = (result, code) => (code !== 0 && result.failed === 0 ? { ...result, failed: 1 } : result);

/**
 * Returns the result in a report that a program wrote as JSON; one failure if it wrote none.
 * @param {string} path @param {number} code @param {(report: any) => Result} read @returns {Result}
 */
export const reported = (path, code, read) =>
  existsSync(path) ? settle(read(JSON.parse(readFileSync(path, 'utf8'))), code) : { passed: 0, failed: 1 };

/**
 * Runs jobs in their order, so many at a time, and returns their results.
 * @template T
 * @param {number} count @param {(() => Promise<T>)[]} jobs @returns {Promise<T[]>}
 */
export async function atOnce(count, jobs) {
  /** @type {T[]} */
  const results = [];
  const queue = jobs.entries();
  const work = async () => {
    for (const [index, job] of queue) results[index] = await job();
  };
  await Promise.all(Array.from({ length: count }, work));
  return results;
}
