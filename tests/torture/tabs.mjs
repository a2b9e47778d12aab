// Two tabs: one run trains in one of them; a newer version elsewhere; a tab that dies frees its run.
import { TINY, differences } from './arena.mjs';

export async function tabs(arena, tally, { times = 1 }) {
  const truth = await arena.truth(TINY, 6);
  for (let time = 0; time < times; time++) {
    const first = await arena.subject();
    const second = await arena.subject();
    const run = await first.do(async (s, setting) => {
      const made = await s.create(setting);
      await s.step(1);
      await s.current().save();
      return made;
    }, TINY);
    const busy = await second.do((s, run) => s.settled(s.resume({ run })), run);
    tally.add(
      'second tab is BUSY',
      differences('the answer', [busy.ok, busy.code, busy.word], [false, 'BUSY', 'run.locked']),
      busy.ms,
      100,
    );
    const devtools = await first.page.context().newCDPSession(first.page);
    const freed = second.do(async (_, run) => {
      const held = async () =>
        (await navigator.locks.query()).held?.some(({ name }) => name?.includes(run));
      for (const end = performance.now() + 10_000; (await held()) && performance.now() < end;)
        await new Promise((done) => setTimeout(done, 5));
      return Date.now();
    }, run);
    const crashed = Date.now();
    void devtools.send('Page.crash').catch(() => undefined);
    const ms = (await freed) - crashed;
    const taken = await second.do(async (s, run) => {
      await s.resume({ run });
      return { losses: await s.step(1) };
    }, run);
    taken.ms = ms;
    tally.add(
      'lock of a crashed tab is free',
      differences('loss', taken.losses, [truth.losses[2]]),
      taken.ms,
      1000,
    );
    await first.close().catch(() => undefined);
    await upgraded(arena, tally, second, truth);
    await second.close();
  }
  await swept(arena, tally);
}

/** Waits for a run whose leftovers another tab is removing at this moment. */
async function swept(arena, tally) {
  const [owner, sweeper] = [await arena.subject(), await arena.subject()];
  const run = await owner.do(async (s, setting) => {
    const made = await s.create(setting);
    await s.current().save();
    await s.current().dispose();
    return made;
  }, TINY);
  const millis = 300;
  const sweep = sweeper.do(
    async (_, { run, millis }) => {
      const hold = (name, work) =>
        navigator.locks.request(
          name,
          { ifAvailable: true },
          async (lock) => lock !== null && (await work()),
        );
      return hold(`tabtune-sweep:${run}`, () =>
        hold(`tabtune:${run}`, () => new Promise((done) => setTimeout(done, millis, true))),
      );
    },
    { run, millis },
  );
  const found = await owner.do(async (s, run) => {
    while (!(await navigator.locks.query()).held?.some(({ name }) => name === `tabtune:${run}`))
      await new Promise((done) => setTimeout(done, 1));
    const resumed = await s.settled(s.resume({ run }));
    if (resumed.ok) await s.current().dispose();
    return resumed;
  }, run);
  tally.add(
    'resume while another tab sweeps the run',
    differences('sweep and resume', [await sweep, found.ok, found.word ?? ''], [true, true, '']),
    found.ms,
  );
  await Promise.all([owner.close(), sweeper.close()]);
}

/** Lets another tab open the database at a newer version: this one closes its connection, reports that, and continues training. */
async function upgraded(arena, tally, subject, truth) {
  const from = await subject.do((s) => s.timeline.length);
  const other = await arena.subject();
  const opened = await other.do(async (s) => {
    const started = performance.now();
    const base = await s.database(99);
    const ms = performance.now() - started;
    base.close();
    return ms;
  });
  const found = await subject.do(async (s, from) => {
    const losses = await s.step(1);
    const saved = await s.settled(s.current().save());
    const told = s.timeline
      .slice(from)
      .filter(({ type }) => type === 'warning')
      .map(({ code }) => code);
    return { losses, saved, told };
  }, from);
  const wrong = differences('loss', found.losses, [truth.losses[3]]);
  wrong.push(
    ...differences(
      'save',
      [found.saved.ok, found.saved.code, found.saved.word],
      [false, 'STORAGE_BLOCKED', 'storage.closed'],
    ),
  );
  if (!found.told.includes('storage.closed')) wrong.push(`told: ${found.told}`);
  tally.add('database upgraded by another tab', wrong, opened, 1000);
  await other.do(
    () =>
      new Promise((resolve, reject) => {
        const request = indexedDB.deleteDatabase('tabtune');
        request.onsuccess = resolve;
        request.onerror = () => reject(request.error);
      }),
  );
  await other.close();
}
