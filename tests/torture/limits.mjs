// A browser without timestamp-query, and a device with WebGPU's guaranteed limits: the same bits as otherwise.
import { TINY, differences } from './arena.mjs';

export async function limits(arena, tally, { steps }) {
  const truth = await arena.truth(TINY, steps);
  const train = async (s, { setting, plan, steps }) => {
    await s.create({ ...setting, plans: [plan, plan, plan] });
    const losses = await s.step(steps);
    const profile = await s.settled(s.current().profile(1));
    const counts = await s.tell('counts');
    return { losses, profile, hidden: counts.hidden };
  };
  /** @type {[string, { hide?: string, minimum?: boolean }][]} */
  const plans = [
    ['timestamp-query hidden', { hide: 'timestamp-query' }],
    ['minimum limits (128 MiB, 256 MiB, 8 buffers, 16 KiB)', { minimum: true }],
  ];
  for (const [fault, plan] of plans) {
    await arena.with(async (subject) => {
      const result = await subject
        .do(train, { setting: TINY, plan, steps })
        .catch((error) => ({ failed: error.message.split('\n')[0] }));
      if (result.failed) return tally.add(fault, [result.failed]);
      const wrong = [...differences('losses', result.losses, truth.losses.slice(1, steps + 1))];
      if (plan.hide && result.hidden !== true)
        wrong.push('the device has the feature all the same');
      if (plan.hide)
        wrong.push(
          ...differences(
            'profile',
            [result.profile.ok, result.profile.code],
            [false, 'MISSING_FEATURE'],
          ),
        );
      else if (!result.profile.ok) wrong.push(`profile: ${result.profile.code}`);
      tally.add(fault, wrong);
      tally.note(fault, `${steps} steps`);
    });
  }
}
