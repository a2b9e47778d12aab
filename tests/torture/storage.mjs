// The database, the tab and the disk fail around a save: no wrong head, nothing acknowledged is lost, the run continues.
import { TINY, differences, violations } from './arena.mjs';
import { Chance } from './chance.mjs';
import { fullDisk } from './full-disk.mjs';

const STEPS = 40;

/** Crashes or closes a tab at a random moment of its saves. */
async function tabs(arena, tally, truth, { times, seed = 3 }) {
  const chance = new Chance(seed);
  for (let time = 0; time < times; time++) {
    for (const end of ['crashed', 'closed']) {
      const subject = await arena.subject();
      const run = await subject.do((s, setting) => s.create(setting), TINY);
      void subject
        .do(async (s) => {
          for (;;) {
            await s.step(1);
            await s.saveAloud();
          }
        })
        .catch(() => undefined);
      while (subject.saved.length === 0) await new Promise((done) => setTimeout(done, 5));
      const delay = chance.below(400);
      await new Promise((done) => setTimeout(done, delay));
      if (end === 'crashed') {
        const devtools = await subject.page.context().newCDPSession(subject.page);
        void devtools.send('Page.crash').catch(() => undefined);
        await Promise.race([
          new Promise((done) => subject.page.once('crash', done)),
          new Promise((done) => setTimeout(done, 5000)),
        ]);
      }
      const acknowledged = subject.saved.at(-1).step;
      void subject.close().catch(() => undefined);
      const found = await arena.with(async (next) => {
        const free = await next.do((s, run) => s.freed(run), run);
        return { free, ...(await next.do((s, run) => s.takenUp(run), run)) };
      });
      const wrong = violations(found, acknowledged, truth).map(
        (each) => `${each} (seed ${seed}, after ${delay} ms)`,
      );
      tally.add(`tab ${end} in a save; its lock is free`, wrong, found.free, 1000);
    }
  }
}

/** Causes faults in one trainer: an oversized buffer or broken shader before a save, a lost connection, deletion during a save. */
async function inOne(arena, tally, truth, times) {
  for (let time = 0; time < times; time++) {
    for (const action of ['oversized', 'shader']) {
      await arena.with(async (subject) => {
        const found = await subject
          .do(
            async (s, { setting, action }) => {
              const run = await s.create(setting);
              await s.step(2);
              const head = (await s.current().save()).generation;
              await s.step(1);
              await s.tell('fire', { action });
              const saved = await s.settled(s.current().save());
              const again = await s.settled(s.current().save());
              const list = await s.settled(s.current().checkpoints.list());
              await s.current().dispose();
              return { head, saved, again, list, ...(await s.takenUp(run)) };
            },
            { setting: TINY, action },
          )
          .catch((error) => ({ failed: error.message.split('\n')[0] }));
        const fault =
          action === 'oversized' ? 'oversized buffer, then save' : 'broken shader, then save';
        if (found.failed) return tally.add(fault, [found.failed]);
        const wrong = violations(found, 2, truth);
        for (const saved of [found.saved, found.again])
          if (saved.ok || saved.code !== 'SHADER_FAILED')
            wrong.push(`save: ${saved.ok ? 'acknowledged' : `${saved.code} ${saved.word}`}`);
        if (found.list.length !== 0 && found.list[0]?.generation > found.head)
          wrong.push('a wrong generation is the head');
        tally.add(fault, wrong);
      });
    }
    await arena.with(async (subject) => {
      const closed = await subject.do(async (s, setting) => {
        const run = await s.create(setting);
        await s.step(1);
        await s.current().save();
        await s.tell('fire', { action: 'closeDatabase' });
        await s.step(1);
        const saved = await s.settled(s.current().save());
        return {
          run,
          saved,
          losses: await s.step(1),
          list: (await s.current().checkpoints.list()).map(({ step }) => step),
        };
      }, TINY);
      const wrong = closed.saved.ok ? [] : [`save: ${closed.saved.code} ${closed.saved.word}`];
      tally.add('connection to the database closed while open', [
        ...wrong,
        ...differences('list and loss', [closed.list, closed.losses], [[2, 1], [truth.losses[3]]]),
      ]);
      await deleting(subject, tally, truth, closed.run);
    });
  }
}

/** In a trainer at step 3 with two generations: the run is removed by another worker and the newest one by its own, while the next is saved. */
async function deleting(subject, tally, truth, run) {
  const found = await subject.do(async (s, run) => {
    const [{ generation }] = await s.current().checkpoints.list();
    const runs = await s.runs();
    const saving = s.settled(s.current().save());
    const stranger = await s.settled(runs.remove(run));
    const own = await s.settled(s.current().checkpoints.remove({ generation }));
    const saved = await saving;
    return {
      stranger,
      own,
      saved,
      list: await s.current().checkpoints.list(),
      losses: await s.step(1),
      whole: await s.settled(s.current().checkpoints.exportFile()),
    };
  }, run);
  const wrong = differences(
    'of another',
    [found.stranger.code, found.stranger.word],
    ['BUSY', 'run.locked'],
  );
  if (!found.own.ok || !found.saved.ok || !found.whole.ok)
    wrong.push(
      `remove ${found.own.code}, save ${found.saved.code} ${found.saved.word}, export ${found.whole.word}`,
    );
  wrong.push(
    ...differences(
      'left',
      found.list.map(({ step }) => step),
      [3, 1],
    ),
    ...differences('loss', found.losses, [truth.losses[4]]),
  );
  tally.add('deleting during a save', wrong);
}

/** Deletes the database under a running trainer: the alternative storage restores the run. */
async function deleted(arena, tally, truth) {
  const fault = 'database deleted while open';
  const { autosave, ...options } = TINY.options;
  await arena.with(async (subject) => {
    const run = await subject.do(
      async (s, setting) => {
        const made = await s.create(setting);
        await s.step(3);
        await s.current().save();
        // The alternative storage is written when a run stops.
        await s.current().stop();
        return made;
      },
      { ...TINY, options },
    );
    const devtools = await subject.page.context().newCDPSession(subject.page);
    await devtools.send('Storage.clearDataForOrigin', {
      origin: arena.site.url,
      storageTypes: 'indexeddb',
    });
    const live = await subject.do(async (s) => {
      const losses = await s.step(1);
      const saved = await s.settled(s.current().save());
      await s.current().dispose();
      return { losses, saved };
    });
    tally.add('a trainer whose database was deleted trains further', [
      ...differences('loss', live.losses, [truth.losses[4]]),
      ...(live.saved.ok || live.saved.code?.startsWith('STORAGE')
        ? []
        : [`save: ${live.saved.code}`]),
    ]);
    await devtools.send('Storage.clearDataForOrigin', {
      origin: arena.site.url,
      storageTypes: 'indexeddb',
    });
    const found = await arena.with((next) => next.do((s, run) => s.takenUp(run), run));
    const wrong = violations(found, 3, truth);
    if (found.resumed.ok && found.warnings.length === 0)
      wrong.push('where it came from was not said');
    tally.add(fault, wrong);
  });
}

export async function storage(arena, tally, { short, times = 1 }) {
  const truth = await arena.truth(TINY, STEPS + 3);
  await inOne(arena, tally, truth, times);
  await deleted(arena, tally, truth);
  if (short) return;
  await tabs(arena, tally, truth, { times });
  await fullDisk(tally, {});
}
