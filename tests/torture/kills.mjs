// kill -9 of the whole browser at random moments of saving: acknowledged saves exist, are complete, and continue bit for bit.
import { appendFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { TINY, differences } from './arena.mjs';
import { Chance } from './chance.mjs';

const FAULT = 'browser killed (kill -9) while saving';
const TORN = 'browser killed in the middle of a record of its log, and once more after a save';
/** Start of a record of LevelDB's log: its checksum, a length of 4096 bytes, none of which follow, and its type. */
const HALF_A_RECORD = Uint8Array.of(1, 2, 3, 4, 0, 16, 1);
// Large enough for a save to take some time.
const LARGER = { ...TINY, shape: { ...TINY.shape, hiddenSize: 64 } };
/** Number of steps after which another run is started. */
const STEPS = 30;

/** Makes steps and saves forever; each save is acknowledged outside of the browser before the next begins. */
async function endless(s) {
  for (;;) {
    await s.step(1);
    await s.saveAloud();
  }
}

/**
 * Checks that every listed generation is complete, that the newest is not older than the acknowledged one, and that the next steps are those of the
 * unbroken run.
 */
async function judge(arena, truth, acknowledged) {
  const wrong = [];
  const subject = await arena.subject();
  const found = await subject.do(async (s, { run, plans }) => {
    const started = performance.now();
    const runs = await s.runs();
    const list = await runs.list({ run });
    const whole = [];
    for (const { generation } of list)
      whole.push({
        generation,
        ...(await s.settled(runs.exportFile(run, { generation }).then(({ size }) => size))),
      });
    const step = await s.resume({ run, plans });
    const ms = performance.now() - started;
    return { list, whole, step, losses: await s.step(2), ms };
  }, acknowledged);
  const newest = found.list[0];
  if (newest.step < acknowledged.step)
    wrong.push(`step ${acknowledged.step} was acknowledged, the newest is of ${newest.step}`);
  wrong.push(
    ...found.whole
      .filter(({ ok }) => !ok)
      .map(({ generation, word }) => `generation ${generation} is torn: ${word}`),
  );
  wrong.push(...differences('resumed at', found.step, newest.step));
  wrong.push(
    ...differences(
      'next losses',
      found.losses,
      truth.losses.slice(newest.step + 1, newest.step + 3),
    ),
  );
  return { subject, wrong, step: found.step + 2, ms: found.ms };
}

/** Leaves the same half record as a kill between two writes of a record: such a moment is too short to be hit by chance. */
function tear({ profile }) {
  const folder = join(profile, 'Default', 'IndexedDB');
  const database = join(
    folder,
    readdirSync(folder).find((name) => name.endsWith('.leveldb')) ?? '',
  );
  const newest = readdirSync(database)
    .filter((name) => /^\d+\.log$/.test(name))
    .sort()
    .at(-1);
  appendFileSync(join(database, String(newest)), HALF_A_RECORD);
}

/**
 * Checks the recovery from a half record: the browser drops it at its next start, and at the one after deletes all databases, if more was written
 * behind it.
 */
async function torn(arena, tally, truth, subject, run) {
  let after;
  const wrong = [];
  for (const damage of [tear, () => undefined]) {
    await subject.do((s) => s.saveAloud());
    const acknowledged = { run, ...subject.saved.at(-1) };
    await arena.browser.kill();
    damage(arena.browser);
    await arena.browser.start();
    after = await judge(arena, truth, acknowledged);
    wrong.push(...after.wrong);
    subject = after.subject;
  }
  tally.add(TORN, wrong, after?.ms);
  return subject;
}

export async function kills(arena, tally, { times, seed = 1, short }) {
  const setting = short ? TINY : LARGER;
  const truth = await arena.truth(setting, STEPS + 60);
  const chance = new Chance(seed);
  let subject;
  let at = STEPS;
  let run;
  for (let count = 0; count < times; count++) {
    if (at >= STEPS) {
      await subject?.close();
      subject = await arena.subject();
      run = await subject.do((s, setting) => s.create(setting), setting);
    }
    const ended = subject.do(endless).catch(() => undefined);
    for (const until = Date.now() + 60_000; subject.saved.length === 0;) {
      if (Date.now() > until) throw new Error('no save was acknowledged');
      await new Promise((done) => setTimeout(done, 5));
    }
    const delay = chance.below(400);
    await new Promise((done) => setTimeout(done, delay));
    await arena.browser.kill();
    await ended;
    const acknowledged = { run, ...subject.saved.at(-1) };
    await arena.browser.start();
    const after = await judge(arena, truth, acknowledged);
    tally.add(
      FAULT,
      after.wrong.map((each) => `${each} (seed ${seed}, kill ${count + 1}, after ${delay} ms)`),
      after.ms,
    );
    subject = after.subject;
    at = after.step;
  }
  subject = await torn(arena, tally, truth, subject, run);
  await subject.close();
}
