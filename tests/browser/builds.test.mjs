// The quick build of the core computes exactly the losses of the release build. TABTUNE_OLD names the package folder of another build, such as
// another commit's, to compare with too, in this case with every update rule.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { Arena, TINY } from '../torture/arena.mjs';

const STEPS = 12;
const RULES = {
  adamw: { type: 'adamw', weightDecay: 0.1 },
  adafactor: { type: 'adafactor' },
  apollo: { type: 'apollo', rank: 4, updateSteps: 5 },
  'apollo mini': { type: 'apollo', mini: true, rank: 1, updateSteps: 5 },
  sgd: { type: 'sgd' },
  'sgd momentum': { type: 'sgd', momentum: 0.9 },
};

const compared = process.env.TABTUNE_OLD ? Object.entries(RULES) : [['adamw', RULES.adamw]];

/** Returns losses by rule and precision, for the package in `folder`. */
async function lossesOf(folder) {
  const arena = await Arena.start({ folders: { '/dist/': folder } });
  const losses = {};
  try {
    for (const [name, optimizer] of compared) {
      for (const precision of ['f32', 'bf16']) {
        const setting = { ...TINY, options: { ...TINY.options, optimizer, precision, seqLen: 8 } };
        losses[`${name}, ${precision}`] = await arena.inPage(
          async (s, { setting, count }) => {
            await s.create(setting);
            const losses = await s.step(count);
            await s.current().dispose();
            return losses;
          },
          { setting, count: STEPS },
        );
      }
    }
  } finally {
    await arena.end();
  }
  return losses;
}

test('quick and release builds give equal losses', async () => {
  const release = await lossesOf('dist');
  const runs = Object.values(release);
  assert.ok(runs.every((losses) => losses.length === STEPS && losses.every(Number.isFinite)));
  assert.equal(
    new Set(runs.map((losses) => losses.at(-1))).size,
    runs.length,
    'rules that compute the same',
  );
  assert.deepEqual(await lossesOf('dist-quick'), release);
  if (process.env.TABTUNE_OLD) assert.deepEqual(await lossesOf(process.env.TABTUNE_OLD), release);
});
