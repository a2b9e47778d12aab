// No room for a checkpoint: at every piece of a save, with an old head. The old head is kept, the run continues, the next save works.
import { TINY } from './arena.mjs';

// Several pieces of 8 MiB and the small documents.
const LARGE = {
  ...TINY,
  shape: { ...TINY.shape, hiddenSize: 256, numHiddenLayers: 2, numAttentionHeads: 4 },
};

async function refused(s, { truth, arm }) {
  const run = s.current().runId;
  // A step that is saved already is not saved again.
  await s.step(1);
  const before = (await s.current().checkpoints.list())[0];
  if (arm) await s.tell('arm', { at: { ...arm, do: 'quota' } });
  const saved = await s.settled(s.current().save());
  const list = await s.current().checkpoints.list();
  const step = s.current().completedSteps + 1;
  const [loss] = await s.step(1);
  const wrong = [];
  if (!saved.ok && (saved.code !== 'QUOTA_EXCEEDED' || saved.word !== 'storage.quota'))
    wrong.push(`save: ${saved.code} ${saved.word}`);
  if (!saved.ok && list[0].generation !== before.generation)
    wrong.push(`a refused save made generation ${list[0].generation} the head`);
  if (saved.ok && list[0].generation === before.generation)
    wrong.push('an acknowledged save is not the head');
  const whole = await s.settled(s.current().checkpoints.exportFile());
  if (!whole.ok) wrong.push(`the head is torn: ${whole.word}`);
  if (loss !== truth[step]) wrong.push(`loss of step ${step}`);
  return { run, refused: !saved.ok, wrong, generation: list[0].generation };
}

export async function quota(arena, tally, { short }) {
  await injected(arena, tally);
  // The browser's own quota is also tested in refusals.test.mjs.
  if (!short) await real(arena, tally, 24);
}

/** Refuses exactly the k-th piece, for every k, by the hook in the worker. */
async function injected(arena, tally) {
  const fault = 'no room at the k-th piece, every k (storage call refused)';
  const truth = await arena.truth(TINY, 80);
  await arena.with(async (subject) => {
    const count = await subject.do(async (s, setting) => {
      await s.create(setting);
      await s.step(1);
      // The first save of a run stores its data too.
      await s.current().save();
      await s.tell('reset');
      await s.step(1);
      await s.current().save();
      return (await s.tell('counts')).puts;
    }, TINY);
    for (let k = 1; k <= count; k++) {
      const result = await subject.do(refused, { truth: truth.losses, arm: { put: k } });
      tally.add(fault, [
        ...result.wrong,
        ...(result.refused ? [] : [`piece ${k} was not refused`]),
      ]);
    }
    const end = await subject.do((s) => s.settled(s.current().save()));
    tally.add('a save after refused ones', end.ok ? [] : [`${end.code} ${end.word}`]);
  });
}

/**
 * Lowers the browser's own quota in steps of a piece. Chromium caches the free space for half a minute, so it is restarted each time, on the same
 * profile.
 */
async function real(arena, tally, sizes) {
  const fault = 'quota of the browser, lowered piece by piece';
  const truth = await arena.truth(LARGE, sizes + 3);
  const origin = `${arena.site.url}/`;
  const { run, bytes } = await arena.inPage(async (s, setting) => {
    const run = await s.create(setting);
    await s.step(1);
    const { bytes } = await s.current().save();
    await s.current().dispose();
    return { run, bytes };
  }, LARGE);
  let times = 0;
  for (let k = 0; k < sizes; k++) {
    await arena.browser.restart();
    await arena.with(async (subject) => {
      const devtools = await subject.page.context().newCDPSession(subject.page);
      // A database that has not been opened yet counts as empty.
      await subject.do(async (s, run) => {
        await s.resume({ run });
        await s.step(1);
      }, run);
      const { usage } = await devtools.send('Storage.getUsageAndQuota', { origin });
      await devtools.send('Storage.overrideQuotaForOrigin', {
        origin,
        quotaSize: Math.round(usage + (bytes * k) / sizes),
      });
      const result = await subject.do(refused, { truth: truth.losses });
      if (result.refused) times++;
      tally.add(fault, result.wrong);
      await devtools.send('Storage.overrideQuotaForOrigin', { origin });
    });
  }
  tally.note(fault, `${times} refused of ${sizes}, ${bytes} bytes a save`);
  if (times === 0) tally.add(fault, ['no save was refused']);
}
