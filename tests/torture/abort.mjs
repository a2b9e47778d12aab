// Aborts every long call at many moments: AbortError within its time limit, then the next step is that of the unbroken run.
import { TINY, differences } from './arena.mjs';

/** Calls of a trainer; each begins with the state of a complete step and must leave such a state. */
const CALLS = {
  run: (s, signal) => s.run({ signal }),
  step: (s, signal) => s.current().step(50, { signal }),
  evaluate: (s, signal) => s.current().evaluate({ signal }),
  sample: async (s, signal) => {
    for await (const token of s
      .current()
      .sample('It is', { maxTokens: 200, temperature: 1, signal }))
      void token;
  },
  save: (s, signal) => s.current().checkpoints.save({ signal }),
  export: (s, signal) => s.current().export({ signal }),
  load: (s, signal) => s.current().checkpoints.load({ signal }),
};

/** The sizes of SmolLM2-135M with two layers. */
const SMOLLM2 = {
  ...TINY,
  sizes: { vocab: 49152, hidden: 576, intermediate: 1536, layers: 2, heads: 9, kvHeads: 3 },
};

/** The same widths with the letters of the text as vocabulary: samples need a tokenizer. */
const LETTERS = {
  ...TINY,
  shape: {
    ...TINY.shape,
    hiddenSize: 576,
    intermediateSize: 1536,
    numHiddenLayers: 2,
    numAttentionHeads: 9,
    numKeyValueHeads: 3,
  },
};

/** `boundMs` is the time after an abort within which its call ends, in addition to that of a micro-batch. */
export async function abort(arena, tally, { delays, boundMs, large = false }) {
  const { sample, ...others } = CALLS;
  if (!large) return during(arena, tally, TINY, CALLS, 100, { delays, boundMs }, starts);
  await during(arena, tally, SMOLLM2, others, 60, { delays, boundMs }, starts);
  await during(arena, tally, LETTERS, { sample }, 20, { delays, boundMs });
}

/** Aborts calls of one trainer, which makes fewer than `steps` steps in the meantime, then the calls in `more`. */
async function during(arena, tally, setting, calls, steps, { delays, boundMs }, more) {
  const truth = await arena.truth(setting, steps);
  await arena.with(async (subject) => {
    const microBatchMs = await subject.do(async (s, setting) => {
      await s.create(setting);
      await s.step(1);
      await s.current().save();
      const from = performance.now();
      await s.step(2);
      return (performance.now() - from) / 2 / setting.options.gradientAccumulationSteps;
    }, setting);
    const bound = boundMs + microBatchMs;
    for (const [name, call] of Object.entries(calls)) {
      for (const delay of delays) {
        const result = await subject
          .do(
            `async (s, { delay }) => {
            const call = ${call};
            const controller = new AbortController();
            let asked;
            setTimeout(() => { asked = performance.now(); controller.abort(); }, delay);
            const end = await s.settled(call(s, controller.signal));
            const ms = asked === undefined ? 0 : performance.now() - asked;
            const { value, ...how } = end;
            const before = s.current().completedSteps;
            const [loss] = await s.step(1);
            return { how, ms, before, loss };
          }`,
            { delay },
          )
          .catch((error) => ({ failed: error.message.split('\n')[0] }));
        const fault = `abort of ${name}`;
        if (result.failed) {
          tally.add(fault, [result.failed]);
          continue;
        }
        const wrong =
          result.how.ok || result.how.name === 'AbortError'
            ? []
            : [`${result.how.code} ${result.how.word} ${result.how.message}`];
        wrong.push(
          ...differences(
            `loss of step ${result.before + 1}`,
            result.loss,
            truth.losses[result.before + 1],
          ),
        );
        tally.add(fault, wrong, result.ms, bound);
      }
    }
    await more?.(subject, tally, setting, truth, delays, bound);
  });
}

/** Calls that create something: after an abort, the same call works when it is made again. */
async function starts(subject, tally, setting, truth, delays, bound) {
  const made = await subject.do(async (s) => {
    const saved = await s.current().save();
    globalThis.files = (await s.current().exportFiles()).map(
      ({ name, blob }) => new File([blob], name),
    );
    globalThis.container = await s.current().checkpoints.exportFile();
    const run = s.current().runId;
    await s.current().dispose();
    return { run, step: saved.step };
  });
  const CALLS = {
    open: `(signal) => s.tabtune.openModel(globalThis.files, { worker: s.workers(), signal }).then((model) => model.dispose())`,
    create: `async (signal) => {
      const model = await s.model(setting);
      const made = await s.settled(s.tabtune.Trainer.create({ model, data: s.dataOf(setting), ...setting.options, signal }));
      if (made.ok) return made.value.dispose();
      await model.dispose();
      throw Object.assign(new Error(made.message), { name: made.name, code: made.code });
    }`,
    resume: `(signal) => s.tabtune.Trainer.resume({ run, worker: s.workers(), signal }).then((trainer) => trainer.dispose())`,
    import: `async (signal) => {
      const runs = await s.runs();
      const { run } = await runs.importFile(globalThis.container, { signal });
      await runs.remove(run);
    }`,
  };
  for (const [name, call] of Object.entries(CALLS)) {
    for (const delay of delays) {
      const result = await subject.do(
        `async (s, { delay, setting, run }) => {
          const call = ${call};
          const controller = new AbortController();
          let asked;
          setTimeout(() => { asked = performance.now(); controller.abort(); }, delay);
          const { value, ...how } = await s.settled(call(controller.signal));
          const ms = asked === undefined ? 0 : performance.now() - asked;
          const again = await s.settled(call(new AbortController().signal));
          return { how, ms, again: again.ok || again.message };
        }`,
        { delay, setting, run: made.run },
      );
      const wrong =
        result.how.ok || result.how.name === 'AbortError'
          ? []
          : [`${result.how.code} ${result.how.word} ${result.how.message}`];
      wrong.push(...differences('the same again', result.again, true));
      tally.add(`abort of ${name}`, wrong, result.ms, bound);
    }
  }
  const next = await subject.do(async (s, { run }) => {
    await s.resume({ run });
    const losses = await s.step(1);
    await s.current().dispose();
    return losses;
  }, made);
  tally.add('abort of resume', differences('next loss', next, [truth.losses[made.step + 1]]));
}
