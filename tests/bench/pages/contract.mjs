// The interface of every measured page: window.__bench({ size, steps, specUrl }), one call for the first step, then one per window of steps.

/**
 * Publishes a page. `build(spec, size)` makes the model: `{ params, sameInit, train(first, count) }`, where `train` runs steps `first` to `first +
 * count − 1` (from 0; the step picks the batch) and returns the losses it read, the last step's loss last.
 */
export function publish(build) {
  let run;
  globalThis.__bench = async ({ size, steps, specUrl }) => {
    let losses = [];
    if (!run) {
      const spec = await import(specUrl);
      const tokens = spec.makeTokens(size);
      const model = await build(spec, size, tokens);
      const builtMs = performance.now();
      losses = await model.train(0, 1);
      run = {
        model,
        size,
        done: 1,
        builtMs,
        firstStepMs: performance.now(),
        tokens: spec.checksum(tokens),
      };
    }
    if (size !== run.size)
      throw new Error(`this page trains ${run.size}, not ${size}: load it again`);
    let stepMs;
    if (steps > 0) {
      const begun = performance.now();
      losses = [...losses, ...(await run.model.train(run.done, steps))];
      stepMs = (performance.now() - begun) / steps;
      run.done += steps;
    }
    const { params, sameInit } = run.model;
    return {
      params,
      builtMs: run.builtMs,
      firstStepMs: run.firstStepMs,
      stepMs,
      losses,
      tokens: run.tokens,
      sameInit,
    };
  };
}
