// The optimizers of the wasm build on this browser's WebGPU: resume for every optimizer and precision.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { built } from '../../web/core-kind.mjs';
import { inModule } from './chromium.mjs';
import { siteAndBrowser } from './hooks.mjs';

const OPTIMIZERS = [
  { type: 'adamw' },
  { type: 'adafactor' },
  { type: 'apollo', rank: 2, update_steps: 3 },
  { type: 'apollo', mini: true, projector: 'orthogonal', update_steps: 3 },
  { type: 'sgd', momentum: 0.9, nesterov: true, weight_decay: 0.1 },
];
// Each one is in its decay, or changing in another way, at the stop after step 2 of 4.
const SCHEDULES = [
  { type: 'cosine', warmup_steps: 3, total_steps: 5 },
  { type: 'wsd', decay_start_step: 1, decay_steps: 4 },
  { type: 'infinite', annealing_start_step: 1, tau: 3 },
  { type: 'linear', total_steps: 5 },
  { type: 'constant', warmup_steps: 3 },
];

const at = siteAndBrowser({ '/pkg/': built.core });
/** @type {Awaited<ReturnType<typeof at.open>>} */
let opened;
test.beforeAll(async () => {
  // One page for all: its device compiles each kernel once.
  opened = await at.open('/');
});

/** @typedef {typeof import('./wasm-page.mjs')} Core */
/** @template A, R @param {(core: Core, argument: A) => R} work @param {A} argument */
const inPage = (work, argument) => inModule(opened.page, '/browser/wasm-page.mjs', work, argument);
/** @param {object} config */
const straight = (config) => inPage((core, config) => core.straight(config), config);
/** @param {object} config */
const fallbacks = (config) => inPage((core, config) => core.fallbacks(config), config);

const whole = OPTIMIZERS.flatMap((optimizer) =>
  ['f32', 'bf16'].flatMap((precision) =>
    SCHEDULES.map((schedule) => ({ optimizer, precision, schedule, decay: false })),
  ),
);
// Less common rules under one schedule, and a decay that is started manually after the first step.
const both = (optimizer, schedule, decay = false) =>
  ['f32', 'bf16'].map((precision) => ({ optimizer, precision, schedule, decay }));
const more = [
  {
    optimizer: { type: 'adamw', stochastic_rounding: false, weight_decay: 0.1 },
    precision: 'bf16',
    schedule: SCHEDULES[0],
    decay: false,
  },
  ...both({ type: 'adafactor', relative_step: true }, SCHEDULES[1]),
  ...both({ type: 'sgd' }, SCHEDULES[2]),
  ...both({ type: 'adamw' }, { type: 'wsd', decay_steps: 4 }, true),
  ...both(
    { type: 'adafactor' },
    { type: 'infinite', annealing_steps: 4, annealing_type: 'harmonic' },
    true,
  ),
];
for (const { optimizer, precision, schedule, decay } of [...whole, ...more]) {
  test(`resume is bitwise: ${JSON.stringify(optimizer)} ${precision} ${schedule.type}${decay ? ' started by hand' : ''}`, async () => {
    const config = {
      steps: 4,
      batch_size: 2,
      seq_len: 8,
      learning_rate: 1e-2,
      seed: 7,
      optimizer,
      precision,
      schedule,
    };
    const { live, resumed } = await inPage((core, config) => core.resume(config), {
      ...config,
      decay,
    });
    assert.equal(live.losses.length, 4);
    assert.ok(
      live.losses.every(Number.isFinite) && new Set(live.losses).size === 4,
      live.losses.join(),
    );
    assert.deepEqual(resumed, { ...live, losses: live.losses.slice(2) });
    assert.ok('optimizer.safetensors' in live.digests && 'model.safetensors' in live.digests);
    // A save leaves the live run unchanged regardless of the schedule.
    if (schedule === SCHEDULES[0] || !SCHEDULES.includes(schedule))
      assert.deepEqual(await straight({ ...config, decay }), live);
    if (decay)
      assert.notDeepEqual((await straight(config)).losses, live.losses, 'the decay did nothing');
  });
}

test('the trainer lists the parameters that APOLLO leaves to AdamW', async () => {
  const config = { steps: 4, batch_size: 2, seq_len: 8, precision: 'f32' };
  const apollo = await fallbacks({ ...config, optimizer: { type: 'apollo', rank: 8 } });
  const layer = (name) => `model.layers.0.${name}.weight`;
  const projections = ['self_attn.k_proj', 'self_attn.v_proj'].map(layer);
  assert.deepEqual(apollo, [
    'model.embed_tokens.weight',
    layer('input_layernorm'),
    layer('post_attention_layernorm'),
    ...projections,
    'model.norm.weight',
  ]);
  assert.deepEqual(await fallbacks({ ...config, optimizer: { type: 'adamw' } }), []);
});

test('reports that are read together equal those of single steps, and a step that is not finite changes nothing', async () => {
  const together = (count, config) =>
    inPage((core, { count, config }) => core.together(count, config), { count, config });
  const config = {
    steps: 40,
    batch_size: 2,
    seq_len: 8,
    learning_rate: 1e-2,
    seed: 7,
    max_grad_norm: 0.5,
    optimizer: { type: 'adamw' },
    precision: 'bf16',
  };
  const alone = await together(17, { ...config, report_every: 1 });
  const found = await together(17, { ...config, report_every: 8 });
  assert.deepEqual([alone.losses.length, alone.most, found.most], [17, 0, 9]);
  assert.deepEqual(
    [found.losses, found.model, found.optimizer],
    [alone.losses, alone.model, alone.optimizer],
  );
  // Seventeen steps end two windows of eight.
  assert.ok(
    found.reads <= 2 && alone.reads >= 17,
    `${found.reads} reads, ${alone.reads} one by one`,
  );
  // The first step takes every weight to the limit of f32: the second has no finite loss or gradient.
  const wild = {
    ...config,
    learning_rate: 1e38,
    max_grad_norm: 0,
    optimizer: { type: 'sgd' },
    precision: 'f32',
  };
  const first = await together(1, { ...wild, report_every: 1 });
  const refused = await together(17, { ...wild, report_every: 8 });
  const { kind, tensor = '', step } = refused.refused ?? {};
  assert.deepEqual([kind, step], ['NON_FINITE', 2]);
  assert.match(tensor, /^(loss|gradient of model\..*)$/);
  assert.deepEqual(
    [refused.losses, refused.completedSteps, refused.model],
    [first.losses, 1, first.model],
  );
});

test('a loss that is not finite changes nothing at each of seventeen steps', async () => {
  const config = {
    steps: 40,
    report_every: 8,
    learning_rate: 1e-2,
    seed: 7,
    max_grad_norm: 0.5,
    optimizer: { type: 'adamw' },
    precision: 'bf16',
  };
  const faults = await inPage((core, config) => core.refusedAt(17, config), config);
  assert.deepEqual(faults, []);
});

/** Measures the host's work in a step, in an open page. */
async function costsTheHost({ page }, shape, precision, { submits, steps, masked = false }) {
  // Tiles compute 32 rows and more.
  const config = {
    steps: 60,
    batch_size: 4,
    seq_len: 8,
    report_every: 8,
    seed: 7,
    max_grad_norm: 0.5,
    optimizer: { type: 'adamw' },
    precision,
  };
  const work = await inModule(
    page,
    '/browser/wasm-page.mjs',
    (/** @type {Core} */ core, { steps, shape, config, masked }) =>
      core.hostWork(steps, shape, config, masked),
    { steps, shape, config, masked },
  );
  console.log(JSON.stringify(work));
  assert.deepEqual([work.createBindGroup, work.writeBuffer], [0, 1]);
  // Mapped buffers are created when two reads overlap.
  assert.ok(
    work.createBuffer <= 1 / 8 && work.mapAsync <= 1 / 8 && work.submit <= submits,
    `${work.mapAsync} reads and ${work.submit} submits a step`,
  );
  assert.ok(
    work.javascript <= 4 * work.dispatchWorkgroups,
    `${work.javascript} calls for ${work.dispatchWorkgroups} dispatches`,
  );
  return work;
}

test('a step that runs as recorded costs the host one write, one read and three calls a dispatch', async () => {
  for (const precision of ['f32', 'bf16'])
    await costsTheHost(opened, { num_hidden_layers: 4 }, precision, { submits: 5, steps: 16 });
});

test('a step whose targets do not all count costs the host no more', async () => {
  await costsTheHost(opened, { num_hidden_layers: 4 }, 'f32', {
    submits: 5,
    steps: 16,
    masked: true,
  });
});

/** A deep model has SmolLM2's thirty layers. A software adapter compiles the kernels of GPUs for half a minute, so it runs with TABTUNE_FULL=1. */
const DEEP = { layers: 30, submits: 11 };

test('a step of a deep model, by the kernels of GPUs, has ten submits for thirty layers', async () => {
  test.skip(process.env.TABTUNE_FULL === undefined, 'runs with TABTUNE_FULL=1');
  // The core takes any adapter for a GPU that does not identify itself as a fallback.
  const script = () =>
    Object.defineProperty(GPUAdapterInfo.prototype, 'isFallbackAdapter', { get: () => false });
  const asGpu = await at.open('/', { script });
  const shape = {
    num_hidden_layers: DEEP.layers,
    hidden_size: 48,
    intermediate_size: 64,
    num_attention_heads: 3,
    num_key_value_heads: 1,
  };
  const { dispatchWorkgroups } = await costsTheHost(asGpu, shape, 'bf16', {
    submits: DEEP.submits,
    steps: 8,
  });
  // As counted in tests/suite/ops/budget.rs, except for the head, whose vocabulary is small here.
  assert.equal(dispatchWorkgroups, 27 * DEEP.layers + 26);
  assert.deepEqual(asGpu.record.errors, []);
  await asGpu.page.close();
});

test('no error reached the console', () => {
  assert.deepEqual(opened.record.errors, []);
});
