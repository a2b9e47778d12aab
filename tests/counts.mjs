// Results of tests: the numbers that passed and failed.

/** Adds up results. */
export function add(...results) {
  return results.reduce((sum, each) => ({ passed: sum.passed + each.passed, failed: sum.failed + each.failed }), { passed: 0, failed: 0 });
}

/** Counts a part that ended with an error but without a failed test of its own (for example because it did not compile) as one failure. */
export function settle(result, code) {
  return code !== 0 && result.failed === 0 ? { ...result, failed: 1 } : result;
}
