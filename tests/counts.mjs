// What tests found: how many passed and failed.

/** All results together. */
export function add(...results) {
  return results.reduce((sum, each) => ({ passed: sum.passed + each.passed, failed: sum.failed + each.failed }), { passed: 0, failed: 0 });
}

/** A part that ended badly without a failed test of its own (it did not compile, say) counts as one failure. */
export function settle(result, code) {
  return code !== 0 && result.failed === 0 ? { ...result, failed: 1 } : result;
}
