// The core panics in wasm: another worker takes over and makes the same steps; the same panic twice is a clear stop.
import { TINY, differences, lossFaults } from './arena.mjs';
import { submitsOfAStep } from './losses.mjs';

const LAST = 5;

export async function panics(arena, tally, { times }) {
  const truth = await arena.truth(TINY, LAST, [LAST]);
  const { submits } = await submitsOfAStep(arena);
  for (let time = 0; time < times; time++) {
    await arena.with(async (subject) => {
      const result = await subject
        .do(
          async (s, { setting, submit, last }) => {
            await s.create(setting);
            await s.step(1);
            await s.current().save();
            await s.tell('arm', { at: { submit, do: 'panic' } });
            await s.step(last - 1);
            const fired = s.timeline.find(({ type }) => type === 'fired');
            const warning = s.timeline.find(
              ({ type, at }) => type === 'warning' && at >= fired?.at - 1,
            );
            return {
              digests: await s.digests(),
              warning,
              ms: (warning?.at ?? Infinity) - fired?.at,
            };
          },
          { setting: TINY, submit: 1 + ((time * 11) % (2 * submits)), last: LAST },
        )
        .catch((error) => ({ failed: error.message.split('\n')[0] }));
      if (result.failed) return tally.add('core panics in a step', [result.failed], 0);
      const words = /panic/i.test(result.warning?.message ?? '')
        ? []
        : [`the warning does not say what panicked: ${result.warning?.message}`];
      tally.add(
        'core panics in a step',
        [
          ...words,
          ...differences('weights', result.digests, truth.digests[LAST]),
          ...(await lossFaults(subject, truth, LAST)),
        ],
        result.ms,
        1000,
      );
    });
  }
  await arena.with(async (subject) => {
    const plan = { at: { submit: 5 + submits, do: 'panic' } };
    const result = await subject.do(
      async (s, { setting, plan }) => {
        await s.create({ ...setting, plans: [{}, plan, plan, plan] });
        await s.step(1);
        await s.current().save();
        const run = s.current().runId;
        await s.tell('arm', { at: { submit: 1, do: 'panic' } });
        const end = await s.settled(s.step(3));
        await s.current().dispose();
        const runs = await s.runs();
        return { end, whole: (await s.settled(runs.exportFile(run))).ok };
      },
      { setting: TINY, plan },
    );
    const wrong = differences(
      'the end',
      [result.end.ok, result.end.code, result.whole],
      [false, 'WORKER_CRASHED', true],
    );
    if (!/panic/i.test(result.end.message)) wrong.push(`it says: ${result.end.message}`);
    tally.add('core panics again at the same place: a clear stop', wrong);
  });
}
