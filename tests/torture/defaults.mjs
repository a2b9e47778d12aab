// Survival without any setting: a run with default options recovers from a loss at its first step, and from a tab that died between saves.
import { TINY, differences, lossFaults } from './arena.mjs';
import { Chance } from './chance.mjs';

const { autosave, ...options } = TINY.options;
const DEFAULT = { ...TINY, options };
/** The default that the documentation promises; most crashes use a shorter interval, set by the same option. */
const DEFAULT_SECS = 120;

/** Loses the GPU before anything was saved manually. */
async function firstStep(arena, tally, truth) {
  await arena.with(async (subject) => {
    const done = await subject.do(async (s, setting) => {
      await s.create(setting);
      await s.tell('arm', { at: { submit: 2, do: 'destroy' } });
      const end = await s.settled(s.step(4));
      return {
        end: end.ok || `${end.code} ${end.word}`,
        recovered: s.timeline.some(({ state }) => state === 'recovering'),
      };
    }, DEFAULT);
    tally.add('GPU lost in the first step of a default run', [
      ...differences('end', done, { end: true, recovered: true }),
      ...(await lossFaults(subject, truth, 4)),
    ]);
  });
}

/** Checks that steps, evaluations and samples come back with the run. */
async function history(arena, tally) {
  const fault = 'history of steps, evaluations and samples after a crash of the tab';
  const setting = {
    ...DEFAULT,
    options: {
      ...options,
      evalEvery: 2,
      sampleEvery: 3,
      samplePrompt: 'It',
      sample: { maxTokens: 4 },
    },
  };
  const first = await arena.subject();
  const { run, heard } = await first.do(async (s, setting) => {
    const run = await s.create(setting);
    await s.run({ maxSteps: 7 });
    await s.current().save();
    return {
      run,
      heard: s.timeline
        .filter(({ type }) => ['step', 'eval', 'sample'].includes(type))
        .map(({ at, ...event }) => event),
    };
  }, setting);
  const devtools = await first.page.context().newCDPSession(first.page);
  void devtools.send('Page.crash').catch(() => undefined);
  await Promise.race([
    new Promise((done) => first.page.once('crash', done)),
    new Promise((done) => setTimeout(done, 5000)),
  ]);
  void first.close().catch(() => undefined);
  const found = await arena.with((next) =>
    next.do(async (s, run) => {
      await s.freed(run);
      await s.resume({ run });
      const history = await s.current().history();
      await s.current().dispose();
      return history;
    }, run),
  );
  const plain = (entries) =>
    entries.map((entry) =>
      Object.fromEntries(
        Object.keys(entry)
          .sort()
          .map((key) => [key, entry[key]]),
      ),
    );
  tally.add(fault, differences('history', plain(found), plain(heard)));
}

/** Crashes a tab at a random moment, which loses no more than the time between two saves. */
async function between(arena, tally, { times, seed, secs }) {
  const fault =
    secs === DEFAULT_SECS
      ? 'tab crashed between automatic saves, default options'
      : 'tab crashed between automatic saves';
  const chance = new Chance(seed);
  const setting = {
    ...DEFAULT,
    options:
      secs === DEFAULT_SECS
        ? { ...options, steps: 1_000_000 }
        : { ...options, saveEverySecs: secs },
  };
  for (let time = 0; time < times; time++) {
    const subject = await arena.subject();
    await subject.do((s, setting) => s.create(setting), setting);
    const ended = subject.do((s) => s.run()).catch(() => undefined);
    await subject.until((timeline) =>
      ['checkpoint', 'step'].every((wanted) => timeline.some(({ type }) => type === wanted)),
    );
    // Long enough for one save by time, and part of the interval to the next.
    await new Promise((done) => setTimeout(done, 1000 * secs * (1.3 + chance.next())));
    const heard = await subject.do((s) => ({
      run: s.current().runId,
      timeline: s.timeline.filter(({ type }) => type === 'step' || type === 'checkpoint'),
    }));
    const devtools = await subject.page.context().newCDPSession(subject.page);
    void devtools.send('Page.crash').catch(() => undefined);
    await Promise.race([
      new Promise((done) => subject.page.once('crash', done)),
      new Promise((done) => setTimeout(done, 5000)),
    ]);
    await ended;
    void subject.close().catch(() => undefined);
    const found = await arena.with((next) => next.do((s, run) => s.takenUp(run), heard.run));
    if (!found.resumed.ok) {
      tally.add(fault, [`resume: ${found.resumed.code} ${found.resumed.word}`]);
      continue;
    }
    const steps = heard.timeline.filter(({ type }) => type === 'step');
    const saves = heard.timeline.filter(({ type }) => type === 'checkpoint');
    const kept = steps.findLast(({ step }) => step <= found.resumed.value);
    const lost = steps.at(-1).at - (kept?.at ?? steps[0].at);
    const slowest = Math.max(...saves.map(({ secs }) => secs * 1000));
    // Losses that the tab itself had computed for the next steps before it died.
    const next = steps
      .filter(({ step }) => step > found.resumed.value)
      .slice(0, 2)
      .map(({ loss }) => loss);
    const wrong = differences('next losses', found.losses.slice(0, next.length), next);
    const bound = Math.max(secs * 1000, 10 * slowest) + 2 * slowest + 500;
    if (lost > bound)
      wrong.push(
        `${Math.round(lost)} ms of work lost, bound ${Math.round(bound)} ms (seed ${seed})`,
      );
    const span = (heard.timeline.at(-1).at - heard.timeline[0].at) / 1000;
    const share = saves.reduce((sum, { secs }) => sum + secs, 0) / span;
    tally.add(fault, wrong, lost);
    tally.note(
      fault,
      `saveEverySecs ${secs}; worst is the work lost; saving took ${(100 * share).toFixed(1)} % of the time`,
    );
  }
}

export async function defaults(arena, tally, { times, long = 0, seed = 5 }) {
  const truth = await arena.truth(TINY, 4);
  await firstStep(arena, tally, truth);
  await history(arena, tally);
  await between(arena, tally, { times, seed, secs: 1 });
  await between(arena, tally, { times: long, seed, secs: DEFAULT_SECS });
}
