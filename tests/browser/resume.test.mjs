// Train, save, reload, resume, export in a real browser: the unbroken run and the broken one are the same run, bit for bit.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { RUN, SHAPE, TEXT, create, scenarios } from './scenario.mjs';

const { inPage, restart } = scenarios();

test('support says that this browser can train', async () => {
  const support = await inPage(async (tabtune) => tabtune.support());
  assert.equal(support.ok, true, support.help);
  assert.equal(support.adapter.software, true);
});

/** One block at a time: the save is within a turn, and the next turn begins after it. */
const BLOCKS = {
  blockCoordinate: { blocks: 1, interval: 2, norm: true },
  gradientAccumulationSteps: 4,
  maxGradNorm: 0.5,
};

/**
 * Only the richest run in the short form: its bf16 covers all of f32 and adds the keys of its rounding, its turns add their place.
 * @type {[string, object][]}
 */
const FULL = [
  ['f32', { precision: 'f32' }],
  ['bf16', { precision: 'bf16' }],
];

/** @type {[string, object][]} */
const RUNS = [
  ...(process.env.TABTUNE_FULL === undefined ? [] : FULL),
  ['bf16, one block at a time', { precision: 'bf16', ...BLOCKS }],
];
for (const [name, options] of RUNS) {
  test(`resume is bitwise: ${name}, accumulation, a new process`, async () => {
    const argument = { shape: SHAPE, text: TEXT, options: { ...RUN, ...options } };
    const whole = await inPage(
      `async (tabtune, argument) => {
        const trainer = await (${create})(tabtune, argument);
        const steps = await trainer.step(6);
        const { loss } = await trainer.evaluate();
        const files = await trainer.exportFiles();
        const bytes = await Promise.all(files.map(async ({ name, blob }) => [name, [...new Uint8Array(await crypto.subtle.digest('SHA-256', await blob.arrayBuffer()))].join()]));
        await trainer.dispose();
        return { losses: steps.map((step) => step.loss), norms: steps.map((step) => step.gradNorm), loss, bytes };
      }`,
      argument,
    );
    assert.equal(whole.losses.length, 6);
    assert.ok(whole.losses[5] < whole.losses[0], `loss falls: ${whole.losses}`);

    const first = await inPage(
      `async (tabtune, argument) => {
        const trainer = await (${create})(tabtune, argument);
        const steps = await trainer.step(3);
        await trainer.save();
        const run = trainer.runId;
        await trainer.dispose();
        return { run, losses: steps.map((step) => step.loss), norms: steps.map((step) => step.gradNorm) };
      }`,
      argument,
    );
    await restart();
    const second = await inPage(
      `async (tabtune, { run }) => {
        const trainer = await tabtune.Trainer.resume({ run });
        const steps = await trainer.step(3);
        const { loss } = await trainer.evaluate();
        const files = await trainer.exportFiles();
        const bytes = await Promise.all(files.map(async ({ name, blob }) => [name, [...new Uint8Array(await crypto.subtle.digest('SHA-256', await blob.arrayBuffer()))].join()]));
        await trainer.dispose();
        return { losses: steps.map((step) => step.loss), norms: steps.map((step) => step.gradNorm), loss, bytes };
      }`,
      first,
    );
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
  const result = await inPage(
    `async (tabtune, argument) => {
      const trainer = await (${create})(tabtune, argument);
      await trainer.step(1);
      await trainer.save();
      const run = trainer.runId;
      await trainer.dispose();
      const settings = { learningRate: 5e-3, steps: 9 };
      const refused = await tabtune.Trainer.resume({ run, settings, override: ['steps'] }).then(() => 'none', ({ code, message }) => code + ' ' + message);
      const changed = await tabtune.Trainer.resume({ run, settings, override: ['learningRate', 'steps'] });
      const [step] = await changed.step(1);
      const { totalSteps } = await changed.inspect();
      await changed.dispose();
      return { refused, rate: step.learningRate, totalSteps };
    }`,
    { shape: SHAPE, text: TEXT, options: { ...RUN, warmupSteps: 0 } },
  );
  assert.match(result.refused, /^CHECKPOINT_MISMATCH .*learningRate/s);
  assert.deepEqual([result.rate, result.totalSteps], [5e-3, 9]);
});

test('extending a run stretches its cosine, and a new learning rate replaces one set by hand', async () => {
  const result = await inPage(
    `async (tabtune, argument) => {
      const trainer = await (${create})(tabtune, argument);
      await trainer.step(1);
      const refused = await trainer.setLearningRate(100).then(() => 'none', ({ code, detail }) => code + ' ' + detail.code);
      await trainer.setLearningRate(1e-4);
      await trainer.save();
      const run = trainer.runId;
      await trainer.dispose();
      const resumed = async (settings, override) => {
        await using again = await tabtune.Trainer.resume({ run, settings, override });
        const [{ learningRate }] = await again.step(1);
        return { learningRate, last: (await again.previewSchedule(9)).at(-1) };
      };
      return { refused, longer: await resumed({ steps: 9 }, ['steps']), faster: await resumed({ learningRate: 5e-3 }, ['learningRate']) };
    }`,
    {
      shape: SHAPE,
      text: TEXT,
      options: { ...RUN, warmupSteps: 0, lrScheduler: { type: 'cosine' } },
    },
  );
  assert.equal(result.refused, 'BAD_OPTION config.invalid');
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
  const result = await inPage(
    `async (tabtune, argument) => {
      const trainer = await (${create})(tabtune, argument);
      await trainer.step(2);
      const { loss } = await trainer.evaluate();
      const files = (await trainer.exportFiles()).map(({ name, blob }) => new File([blob], name));
      await trainer.dispose();
      const model = await tabtune.openModel(files);
      const again = await tabtune.Trainer.create({ model, data: { text: argument.text }, ...argument.options });
      const reopened = (await again.evaluate()).loss;
      let text = '';
      for await (const token of again.sample('It is', { maxTokens: 5, temperature: 0 })) text += token.text;
      await again.dispose();
      return { loss, reopened, length: text.length };
    }`,
    { shape: SHAPE, text: TEXT, options: RUN },
  );
  assert.equal(result.reopened, result.loss);
  assert.equal(result.length, 5);
});
