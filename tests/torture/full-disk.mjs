// Another program fills the disk of a browser's profile around saves: no wrong head, and the run continues.
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Arena, TINY, differences, violations } from './arena.mjs';
import { Chance } from './chance.mjs';

const MIB = 2 ** 20;

/** Writes another program's file that fills the disk except for `left` bytes. */
function fill(folder, left) {
  const file = openSync(join(folder, 'filler'), 'a');
  const free = () => {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize - left;
  };
  try {
    for (let bytes = free(); bytes > 0; bytes = free())
      writeSync(file, Buffer.alloc(Math.min(bytes, MIB)));
  } catch (/** @type {any} */ error) {
    // The browser used up the rest.
    if (error.code !== 'ENOSPC') throw error;
  } finally {
    closeSync(file);
  }
}
const unfill = (folder) => rmSync(join(folder, 'filler'), { force: true });

/** Lets another program fill the disk with the user data, before a save and in the middle of one, and then free it again. */
export async function fullDisk(tally, { seed = 9 }) {
  const fault = 'disk full (profile on a small tmpfs)';
  const folder = mkdtempSync(join(tmpdir(), 'tabtune-disk-'));
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=320m', 'tmpfs', folder]).status !== 0) {
    rmSync(folder, { recursive: true });
    tally.add(fault, ['not made: no right to mount']);
    return;
  }
  const chance = new Chance(seed);
  const large = { ...TINY, shape: { ...TINY.shape, hiddenSize: 256, numHiddenLayers: 2 } };
  const answers = {};
  let arena;
  try {
    arena = await Arena.start({ profile: folder });
    const truth = await arena.truth(large, 24);
    const subject = await arena.subject();
    const run = await subject.do((s, setting) => s.create(setting), large);
    const save = () =>
      subject.do(async (s) => {
        const { ok, code, word, message, value } = await s.settled(s.current().save());
        return {
          ok,
          code,
          word,
          message,
          generation: value?.generation,
          step: s.current().completedSteps,
        };
      });
    await subject.do((s) => s.step(1));
    let head = await save();
    /** @type {[string, number][]} */
    const disks = [
      ['before', 0],
      ['before', 1],
      ['before', 6],
      ['before', 12],
      ['within', 0],
      ['within', 0],
      ['within', 0],
      ['within', 0],
    ];
    for (const [when, left] of disks) {
      await subject.do((s) => s.step(1));
      const delay = chance.below(150);
      // Less space than a save needs remains, so that the rest is used up quickly.
      fill(folder, when === 'before' ? left * MIB : 24 * MIB);
      const saving = save();
      if (when === 'within') {
        await new Promise((done) => setTimeout(done, delay));
        fill(folder, left * MIB);
      }
      const full = await saving;
      const words = full.ok ? 'saved' : `${full.code} ${full.word}`;
      answers[words] = (answers[words] ?? 0) + 1;
      const wrong = [];
      if (full.ok) head = full;
      else if (!['QUOTA_EXCEEDED', 'STORAGE_FAILED', 'STORAGE_BLOCKED'].includes(full.code))
        wrong.push(`save: ${full.code} ${full.word} ${full.message}`);
      if (full.ok && when === 'before') wrong.push('saved on a full disk');
      unfill(folder);
      const found = await subject.do(async (s) => ({
        list: await s.settled(s.current().checkpoints.list()),
        whole: await s.settled(s.current().checkpoints.exportFile()),
        losses: await s.step(1),
      }));
      wrong.push(
        ...differences(
          'head',
          found.list.ok ? found.list.value[0]?.generation : found.list.word,
          head.generation,
        ),
      );
      if (!found.whole.ok) wrong.push(`the head is torn: ${found.whole.code} ${found.whole.word}`);
      const again = await save();
      if (again.ok) head = again;
      else wrong.push(`with room again: ${again.code} ${again.word} ${again.message}`);
      wrong.push(...differences('loss', found.losses, [truth.losses[again.step]]));
      tally.add(
        fault,
        wrong.map((each) => `${each} (${when}, ${left} MiB left, after ${delay} ms)`),
      );
    }
    tally.note(
      fault,
      Object.entries(answers)
        .map(([words, count]) => `${words} ${count} times`)
        .join(', '),
    );
    await arena.browser.kill();
    await arena.browser.start();
    const found = await arena.with((next) => next.do((s, run) => s.takenUp(run), run));
    tally.add('browser killed after its disk was full', violations(found, head.step, truth));
  } finally {
    await arena?.end();
    spawnSync('umount', ['-l', folder]);
    rmSync(folder, { recursive: true, force: true });
  }
}
