// One bit of a stored piece is flipped: the piece is named, the older generation is used, and the run continues bit for bit.
import { TINY, differences } from './arena.mjs';
import { Chance } from './chance.mjs';

const FAULT = 'one bit of a stored piece flipped';

export async function flips(arena, tally, { times, resumes, seed = 2 }) {
  const truth = await arena.truth(TINY, 8);
  const chance = new Chance(seed);
  await arena.with(async (subject) => {
    const made = await subject.do(async (s, setting) => {
      const run = await s.create(setting);
      await s.step(2);
      const first = await s.current().save();
      await s.step(2);
      const second = await s.current().save();
      await s.current().dispose();
      return {
        run,
        first: first.generation,
        second: second.generation,
        lengths: await s.pieces({ run, generation: second.generation }),
      };
    }, TINY);
    for (let time = 0; time < times; time++) {
      const index = time < made.lengths.length ? time : chance.below(made.lengths.length);
      const bit = chance.below(8 * made.lengths[index]);
      const where = { run: made.run, generation: made.second, index, bit };
      const result = await subject.do(
        async (s, { where, resume }) => {
          await s.flip(where);
          const runs = await s.runs();
          const named = await s.settled(
            runs.exportFile(where.run, { generation: where.generation }),
          );
          const older = await s.settled(runs.exportFile(where.run));
          let losses;
          let warned;
          if (resume) {
            const from = s.timeline.length;
            await s.resume({ run: where.run });
            losses = [s.current().completedSteps, ...(await s.step(2))];
            warned = s.timeline
              .slice(from)
              .some(
                ({ type, code }) =>
                  type === 'warning' && /CHECKPOINT_CORRUPT|checkpoint\.chunk\.hash/.test(code),
              );
            await s.current().dispose();
          }
          await s.flip(where);
          const mended = await s.settled(
            runs.exportFile(where.run, { generation: where.generation }),
          );
          return { named, older: older.ok, mended: mended.ok, losses, warned };
        },
        { where, resume: time < resumes },
      );
      const wrong = differences(
        'the answer',
        [result.named.ok, result.named.code, result.named.word],
        [false, 'CHECKPOINT_CORRUPT', 'checkpoint.chunk.hash'],
      );
      if (!result.older) wrong.push('the older generation does not serve');
      if (!result.mended) wrong.push('flipped back it is not whole');
      if (result.losses)
        wrong.push(...differences('resumed', result.losses, [2, truth.losses[3], truth.losses[4]]));
      if (result.warned === false) wrong.push('the fall to the older one was not said');
      tally.add(
        FAULT,
        wrong.map((each) => `${each} (seed ${seed}, piece ${index}, bit ${bit})`),
        result.named.ms,
      );
    }
  });
}
