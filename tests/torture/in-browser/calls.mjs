// Sequences of calls of a trainer, and the outcome that each call must have in any order of them.

export const CALLS = [
  'pause',
  'resume',
  'step',
  'stop',
  'save',
  'setLearningRate',
  'abort',
  'load',
  'dispose',
];
const LIMIT_MILLIS = 20_000;

/**
 * Returns `count` different sequences of at most five calls; each says of every call whether it is awaited before the next. `disposes` is how often a
 * call is `dispose`, compared to another one.
 * @param {number} count @param {() => number} chance @param {number} disposes
 * @returns {{ call: string, wait: boolean }[][]}
 */
export function sequences(count, chance, disposes) {
  const others = CALLS.length - 1;
  const pick = () => CALLS[Math.min(others, Math.floor(chance() * (others + disposes)))] ?? 'pause';
  const seen = new Map();
  while (seen.size < count) {
    const sequence = Array.from({ length: 1 + Math.floor(chance() * 5) }, () => ({
      call: pick(),
      wait: chance() < 0.5,
    }));
    seen.set(JSON.stringify(sequence), sequence);
  }
  return [...seen.values()];
}

/** @param {Promise<unknown>} promise */
const within = (promise, millis = LIMIT_MILLIS) =>
  Promise.race([promise, new Promise((done) => setTimeout(() => done('no outcome'), millis))]);
/** Lets everything happen that has become possible. */
const settle = () => new Promise((done) => setTimeout(done, 0));

/**
 * Makes the calls of a sequence while the trainer runs, and returns what was otherwise than it must be. `generation` is the one to load, `lossOf` the
 * loss of a step in an unbroken run.
 * @param {any} trainer @param {{ call: string, wait: boolean }[]} sequence @param {number} generation @param {(step: number) => unknown} lossOf
 * @returns {Promise<string[]>}
 */
export async function play(trainer, sequence, generation, lossOf) {
  /** @type {string[]} */
  const wrong = [];
  let steps = 0;
  const watch = (/** @type {any} */ { detail }) => {
    steps += 1;
    const must = lossOf(detail.step);
    // A fast machine makes more steps than the unbroken run has.
    if (must !== undefined && detail.loss !== must)
      wrong.push(`loss of step ${detail.step}: ${detail.loss}, not ${must}`);
  };
  trainer.addEventListener('step', watch);
  const controller = new AbortController();
  const ended = (async () => {
    try {
      for await (const event of trainer.run({ signal: controller.signal })) void event;
      return 'ok';
    } catch (thrown) {
      return /** @type {any} */ (thrown).code ?? String(thrown);
    }
  })();
  const run = { state: 'running', over: false, ends: /** @type {string[]} */ ([]) };
  void ended.then(() => {
    run.over = true;
    run.state = 'none';
  });
  /** Steps and loads that have not settled. */
  let alone = 0;
  let disposed = false;
  let stops = 0;
  const pending = [];

  /** @type {Record<string, () => any>} */
  const calls = {
    pause: () => trainer.pause(),
    resume: () => trainer.resume(),
    step: async () => (await trainer.step(1)).length,
    stop: () => trainer.stop(),
    save: () => trainer.save(),
    // Control stays with the schedule, so that no loss changes.
    setLearningRate: () => trainer.setLearningRate(undefined),
    abort: async () => {
      controller.abort();
      await ended;
    },
    load: () => trainer.checkpoints.load({ generation }),
    dispose: () => trainer.dispose(),
  };
  const isAlone = (/** @type {string} */ call) => call === 'step' || call === 'load';
  const expected = (/** @type {string} */ call) => {
    if (call === 'pause' || call === 'resume' || call === 'abort' || call === 'dispose')
      return 'ok';
    if (disposed) return 'ABORTED';
    return isAlone(call) && (run.state === 'running' || alone > 0) ? 'BUSY' : 'ok';
  };
  for (const [at, { call, wait }] of sequence.entries()) {
    const name = `${at + 1}. ${call}`;
    const must = expected(call);
    const goesAlone = isAlone(call) && must === 'ok';
    if (goesAlone) alone += 1;
    const before = stops;
    if (call === 'stop' && !disposed) stops += 1;
    const outcome = Promise.resolve(calls[call]?.()).then(
      (value) => ({ is: 'ok', value }),
      (thrown) => ({ is: thrown.code ?? String(thrown), value: undefined }),
    );
    if (!run.over && !disposed) {
      if (call === 'pause' && run.state === 'running') run.state = 'paused';
      if (call === 'resume' && run.state === 'paused') run.state = 'running';
      if (call === 'stop') [run.state, run.ends] = ['none', [...run.ends, 'ok']];
      if (call === 'abort' || call === 'dispose') run.ends = [...run.ends, 'ABORTED'];
    }
    if (call === 'dispose') disposed = true;
    const checked = outcome.then(({ is, value }) => {
      if (goesAlone) alone -= 1;
      // A call that is pending when the trainer is disposed ends with it.
      if (is !== must && !(must === 'ok' && is === 'ABORTED' && disposed))
        wrong.push(`${name}: ${is}, not ${must}`);
      const fewer = stops > before ? [0, 1] : [1];
      if (call === 'step' && is === 'ok' && !fewer.includes(value))
        wrong.push(`${name}: ${value} reports`);
    });
    pending.push(checked);
    if (!wait) continue;
    if ((await within(checked)) === 'no outcome') wrong.push(`${name}: not settled`);
    if (run.ends.length > 0 && !run.over) await within(ended);
    await settle();
  }
  for (const [at, each] of pending.entries())
    if ((await within(each)) === 'no outcome')
      wrong.push(`${at + 1}. ${sequence[at]?.call}: not settled at the end`);
  if (run.ends.length > 0) {
    const end = await within(ended);
    if (!run.ends.includes(String(end)))
      wrong.push(`the run: ${end}, not ${run.ends.join(' or ')}`);
  } else {
    if (run.over) wrong.push('the run ended without a reason');
    await settle();
    const [from, state] = [steps, trainer.state];
    if (run.state === 'running') {
      for (
        const until = performance.now() + LIMIT_MILLIS;
        steps < from + 2 && performance.now() < until;
      )
        await settle();
      if (steps < from + 2)
        wrong.push(`a run that is not paused makes no steps; its state is ${state}`);
    } else {
      await new Promise((done) => setTimeout(done, 10));
      if (steps > from + 1 || state !== 'paused')
        wrong.push(`a paused run is ${state} and made ${steps - from} steps`);
    }
    await within(trainer.stop());
    const end = await within(ended);
    if (end !== 'ok') wrong.push(`the run after a stop: ${end}`);
    if (trainer.state !== 'stopped') wrong.push(`the state after a stop: ${trainer.state}`);
  }
  trainer.removeEventListener('step', watch);
  return wrong;
}
