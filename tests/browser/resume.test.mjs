// Train, save, reload, resume, export in a real browser: the unbroken run and the broken one are the same run, bit for bit.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { scenarios, setting } from './scenario.mjs';

const { inPage, restart } = scenarios();

test('support says that this browser can train', async () => {
  const support = await inPage(({ tabtune }) => tabtune.support());
  assert.equal(support.ok, true, support.help);
  assert.equal(support.adapter?.software, true);
});

/** One block at a time: the save is within a turn, and the next turn begins after it. */
const BLOCKS = {
  blockCoordinate: { blocks: 1, interval: 2, norm: true },
  gradientAccumulationSteps: 4,
  maxGradNorm: 0.5,
};

/**
 * Only the last and richest run in the short form: its bf16 covers all of f32 and adds the keys of its rounding, its turns
 * add their place.
 * @type {[string, import('./scenario.mjs').Options][]}
 */
const RUNS = [
  ['f32', { precision: 'f32' }],
  ['bf16', { precision: 'bf16' }],
  ['bf16, one block at a time', { precision: 'bf16', ...BLOCKS }],
];
for (const [name, options] of RUNS.slice(process.env.TABTUNE_FULL === undefined ? -1 : 0)) {
  test(`resume is bitwise: ${name}, accumulation, a new process`, async () => {
    const whole = await inPage(async ({ create, finished }, argument) => {
      return finished(await create(argument), 6);
    }, setting(options));
    assert.equal(whole.losses.length, 6);
    assert.ok(whole.losses[5] < whole.losses[0], `loss falls: ${whole.losses}`);

    const first = await inPage(async ({ create }, argument) => {
      const trainer = await create(argument);
      const steps = await trainer.step(3);
      await trainer.save();
      await trainer.dispose();
      return {
        run: trainer.runId,
        losses: steps.map(({ loss }) => loss),
        norms: steps.map(({ gradNorm }) => gradNorm),
      };
    }, setting(options));
    await restart();
    const second = await inPage(async ({ tabtune, finished }, run) => {
      return finished(await tabtune.Trainer.resume({ run }), 3);
    }, first.run);
    assert.deepEqual([...first.losses, ...second.losses], whole.losses);
    assert.deepEqual([...first.norms, ...second.norms], whole.norms);
    assert.equal(second.loss, whole.loss);
    assert.deepEqual(second.bytes, whole.bytes);
    assert.ok(
      whole.bytes.some(([name]) => name === 'model.safetensors') &&
        whole.bytes.some(([name]) => name === 'config.json'),
    );
  });
}

test('a resume changes only what override names', async () => {
  const { refused, rate, totalSteps } = await inPage(
    async ({ tabtune, create, failure }, argument) => {
      const trainer = await create(argument);
      await trainer.step(1);
      await trainer.save();
      const run = trainer.runId;
      await trainer.dispose();
      const settings = { learningRate: 5e-3, steps: 9 };
      const refused = await failure(tabtune.Trainer.resume({ run, settings, override: ['steps'] }));
      const override = ['learningRate', 'steps'];
      const changed = await tabtune.Trainer.resume({ run, settings, override });
      const [step] = await changed.step(1);
      const { totalSteps } = await changed.info();
      await changed.dispose();
      return { refused, rate: step.learningRate, totalSteps };
    },
    setting({ warmupSteps: 0 }),
  );
  assert.equal(refused.code, 'CHECKPOINT_MISMATCH');
  assert.match(refused.message, /learningRate/);
  assert.deepEqual([rate, totalSteps], [5e-3, 9]);
});

test('extending a run stretches its cosine, and a new learning rate replaces one set by hand', async () => {
  const result = await inPage(
    async ({ tabtune, create, failure }, argument) => {
      const trainer = await create(argument);
      await trainer.step(1);
      const refused = await failure(trainer.setLearningRate(100));
      await trainer.setLearningRate(1e-4);
      await trainer.save();
      const run = trainer.runId;
      await trainer.dispose();
      /** @param {import('tabtune').TrainOptions} settings */
      const resumed = async (settings) => {
        const override = Object.keys(settings);
        const again = await tabtune.Trainer.resume({ run, settings, override });
        const [{ learningRate }] = await again.step(1);
        const last = (await again.previewSchedule(9)).at(-1);
        await again.dispose();
        return { learningRate, last };
      };
      const longer = await resumed({ steps: 9 });
      return { refused, longer, faster: await resumed({ learningRate: 5e-3 }) };
    },
    setting({ warmupSteps: 0, lrScheduler: { type: 'cosine' } }),
  );
  assert.deepEqual([result.refused.code, result.refused.word], ['BAD_OPTION', 'config.invalid']);
  const cosine = (peak, n, total) =>
    n >= total ? 0 : (peak / 2) * (1 + Math.cos((Math.PI * n) / total));
  // One rounding of f64.
  const near = (found, expected) =>
    assert.ok(Math.abs(found - expected) <= 1e-15, `${found} and ${expected}`);
  assert.equal(result.longer.learningRate, 1e-4);
  near(result.longer.last, cosine(1e-2, 8, 9));
  near(result.faster.learningRate, cosine(5e-3, 1, 6));
  assert.equal(result.faster.last, 0);
});

test('an exported model opens with the same evaluation', async () => {
  const { loss, reopened, length } = await inPage(
    async ({ tabtune, create, filesOf }, argument) => {
      const trainer = await create(argument);
      await trainer.step(2);
      const { loss } = await trainer.evaluate();
      const files = filesOf(await trainer.exportFiles());
      await trainer.dispose();
      const model = await tabtune.openModel(files);
      const data = { text: argument.text };
      const again = await tabtune.Trainer.create({ model, data, ...argument.options });
      const reopened = (await again.evaluate()).loss;
      let text = '';
      for await (const token of again.sample('It is', { maxTokens: 5, temperature: 0 }))
        text += token.text;
      await again.dispose();
      return { loss, reopened, length: text.length };
    },
    setting(),
  );
  assert.equal(reopened, loss);
  assert.equal(length, 5);
});
