// The GPU is lost: in the forward pass, in the update, in a save, paused, idle. The run comes back and is the unbroken run.
import { Arena, TINY, differences, lossFaults } from './arena.mjs';
import { inACall, inASave, inAStep, whileIdle, whilePaused } from './places.mjs';

const LAST = 6;
const SEEN_MS = 1000;

let counted;
/** Returns the number of GPU submissions of one step, so that a loss can be placed in a part of it. */
export async function submitsOfAStep(arena) {
  return (counted ??= await arena.inPage(async (s, setting) => {
    await s.create(setting);
    await s.step(2);
    await s.tell('reset');
    await s.step(1);
    const { submits, maps } = await s.tell('counts');
    await s.tell('reset');
    await s.current().save();
    const saving = await s.tell('counts');
    await s.current().dispose();
    return { submits, maps, savingMaps: saving.maps };
  }, TINY));
}

/** Checks the events between the fault and the recovery. */
function heard(timeline) {
  const wrong = [];
  const fired = timeline.find(({ type }) => type === 'fired');
  const recovering = timeline.findIndex(
    ({ type, state }) => type === 'state' && state === 'recovering',
  );
  if (!fired) return { wrong: ['the fault was not made'], ms: 0 };
  if (recovering < 0) return { wrong: ['no state recovering'], ms: 0 };
  const warned = timeline.findIndex(({ type, at }) => type === 'warning' && at >= fired.at - 1);
  if (warned < 0) wrong.push('no warning');
  const first = warned < 0 ? recovering : Math.min(warned, recovering);
  const after = timeline.slice(first).find(({ type }) => type === 'step');
  const { step } = timeline[recovering];
  if (after && after.step !== step + 1)
    wrong.push(`goes on with step ${after.step} after "recovering" at ${step}`);
  return { wrong, ms: timeline[first].at - fired.at };
}

/** Tests one loss in one trainer: `work` makes steps to LAST in its own way, with the fault inside. */
async function lose(arena, tally, truth, fault, work, argument, outside) {
  await arena.with(async (subject) => {
    await subject.do((s, setting) => s.create(setting), TINY);
    let wrong = [];
    try {
      const done = subject.do(work, { last: LAST, ...argument });
      await outside?.(subject);
      const result = await done;
      const timeline = await subject.do((s) => s.timeline);
      const told = heard(timeline);
      wrong = [...told.wrong, ...(result ?? []), ...(await lossFaults(subject, truth, LAST))];
      wrong.push(
        ...differences('weights', await subject.do((s) => s.digests()), truth.digests[LAST]),
      );
      wrong.push(
        ...differences(
          'history',
          await subject.do(async (s) =>
            (await s.current().history())
              .filter(({ type }) => type === 'step')
              .map(({ loss }) => loss),
          ),
          truth.losses.slice(1, LAST + 1),
        ),
      );
      tally.add(fault, wrong, told.ms, SEEN_MS);
    } catch (/** @type {any} */ error) {
      tally.add(fault, [...wrong, error.message.split('\n')[0]], 0);
    }
  });
}

/** Checks that a rate set manually and a decay started manually before the loss remain in force after it. */
async function byHand(arena, tally) {
  const fault = 'GPU lost after setLearningRate and startDecay';
  const setting = {
    ...TINY,
    options: { ...TINY.options, lrScheduler: { type: 'wsd', decaySteps: 6 } },
  };
  const drive = async (s, { setting, lossy }) => {
    await s.create(setting);
    await s.step(1);
    await s.current().save();
    await s.step(1);
    await s.current().setLearningRate(1e-3);
    await s.step(1);
    await s.current().setLearningRate(undefined);
    await s.current().startDecay();
    await s.step(1);
    if (lossy) await s.tell('fire', { action: 'destroy' });
    await s.step(3);
    const steps = Object.fromEntries(
      s.timeline
        .filter(({ type }) => type === 'step')
        .map(({ step, loss, learningRate }) => [step, [loss, learningRate]]),
    );
    const digests = await s.digests();
    await s.current().dispose();
    return { steps, digests };
  };
  const results = [];
  for (const lossy of [false, true]) {
    results.push(
      await arena
        .with((subject) => subject.do(drive, { setting, lossy }))
        .catch((error) => ({ error: error.message.split('\n')[0] })),
    );
  }
  tally.add(fault, differences('steps and weights', results[1], results[0]));
}

/** Tests losses one after another: a growing delay, then a clear stop with the checkpoint complete. */
async function again(arena, tally) {
  await arena.with(async (subject) => {
    const result = await subject.do(async (s, setting) => {
      await s.create(setting);
      await s.step(1);
      await s.current().save();
      const spans = [];
      for (let loss = 0; loss < 2; loss++) {
        await s.step(1);
        const from = performance.now();
        await s.tell('fire', { action: 'destroy' });
        await s.step(1);
        spans.push(performance.now() - from);
      }
      await s.tell('fire', { action: 'destroy' });
      const third = await s.settled(s.step(1));
      const run = s.current().runId;
      await s.current().dispose();
      const runs = await s.runs();
      const whole = await s.settled(runs.exportFile(run));
      return { spans, third, whole: whole.ok, list: (await runs.list({ run })).length };
    }, TINY);
    const wrong = [];
    if (result.spans[1] < 1000)
      wrong.push(`a second loss was retried after ${Math.round(result.spans[1])} ms`);
    wrong.push(
      ...differences(
        'third loss',
        [result.third.ok, result.third.code],
        [false, 'GPU_UNAVAILABLE'],
      ),
    );
    if (!result.whole) wrong.push('the checkpoint is not whole');
    tally.add(
      'three GPU losses within 60 s: second waits, third is GPU_UNAVAILABLE',
      wrong,
      result.spans[1],
    );
  });
}

/**
 * Tests a loss after which there is no adapter, as if the browser had given up the GPU: a clear stop after a minute, with the checkpoint complete.
 */
async function noAdapter(arena, tally) {
  await arena.with(async (subject) => {
    const result = await subject.do(async (s, setting) => {
      await s.create({ ...setting, plans: [{}, ...Array(30).fill({ noAdapter: true })] });
      await s.step(1);
      await s.current().save();
      await s.tell('fire', { action: 'destroy' });
      const { ok, code, ms } = await s.settled(s.step(1));
      const run = s.current().runId;
      await s.current().dispose();
      const whole = await s.settled((await s.runs()).exportFile(run));
      return { ok, code, ms, whole: whole.ok };
    }, TINY);
    const { ms, ...found } = result;
    tally.add(
      'GPU lost and no adapter within 60 s: GPU_UNAVAILABLE',
      differences('end', found, { ok: false, code: 'GPU_UNAVAILABLE', whole: true }),
      ms,
      75_000,
    );
  });
}

export async function losses(arena, tally, { short, times = 1 }) {
  const truth = await arena.truth(TINY, LAST, [LAST]);
  const { submits, savingMaps } = await submitsOfAStep(arena);
  const forward = { submit: submits + 1 };
  const update = { submit: 2 * submits - 1 };
  if (short) {
    await lose(arena, tally, truth, 'GPU lost (destroy) in a forward pass', inAStep, {
      at: forward,
      action: 'destroy',
    });
    await lose(arena, tally, truth, 'GPU lost (destroy) in a save', inASave, {
      at: { map: 2 },
      action: 'destroy',
    });
    await lose(arena, tally, truth, 'GPU lost (destroy) while paused', whilePaused, {
      action: 'destroy',
    });
    return;
  }
  for (let time = 0; time < times; time++) {
    await lose(arena, tally, truth, 'GPU lost (destroy) in a forward pass', inAStep, {
      at: { submit: 1 + ((time * 7) % submits) },
      action: 'destroy',
      maxSteps: time % 2,
    });
    await lose(arena, tally, truth, 'GPU lost (destroy) in an update', inAStep, {
      at: { submit: update.submit + (time % 2) },
      action: 'destroy',
    });
    await lose(arena, tally, truth, 'GPU lost (destroy) during a read', inAStep, {
      at: { map: 1 + time },
      action: 'destroy',
    });
    await lose(arena, tally, truth, 'GPU lost (destroy) in a save', inASave, {
      at: { map: 1 + (time % savingMaps) },
      action: 'destroy',
    });
    await lose(arena, tally, truth, 'GPU lost (destroy) while paused', whilePaused, {
      action: 'destroy',
    });
    await lose(arena, tally, truth, 'GPU lost (destroy) while idle', whileIdle, {
      action: 'destroy',
    });
  }
  for (const call of ['evaluate', 'sample', 'export', 'load', 'exportFile']) {
    await lose(arena, tally, truth, `GPU lost (destroy) in ${call}`, inACall, {
      call,
      at:
        call === 'load'
          ? { submit: 3 }
          : call === 'export' || call === 'exportFile'
            ? { map: 2 }
            : { submit: 4 },
    });
  }
  await byHand(arena, tally);
  await again(arena, tally);
  await noAdapter(arena, tally);
  await processKills(tally, truth, times);
}

/** Kills the GPU process with SIGKILL: each time in a new browser, because a browser gives up the GPU after several kills. */
async function processKills(tally, truth, times) {
  for (let time = 0; time < times; time++) {
    for (const place of ['running', 'paused']) {
      const arena = await Arena.start();
      try {
        const outside = async (subject) => {
          const test =
            place === 'paused'
              ? (timeline) => timeline.some(({ state }) => state === 'paused')
              : (timeline) => timeline.some(({ step, type }) => type === 'step' && step >= 3);
          await subject.until(test);
          const at = Date.now();
          arena.browser.killGpu();
          await subject.do((s, at) => void s.timeline.push({ at, type: 'fired' }), at);
        };
        const long = { ...truth };
        const work =
          place === 'paused'
            ? whilePaused
            : async (s, { last }) => {
                await s.step(2);
                await s.current().save();
                for (let step = 2; step < last; step++) {
                  await s.step(1);
                  await new Promise((done) => setTimeout(done, 150));
                }
              };
        await lose(arena, tally, long, `GPU process killed (kill -9), ${place}`, work, {}, outside);
      } finally {
        await arena.end();
      }
    }
  }
}
