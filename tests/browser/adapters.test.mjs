// Adapters (LoRA) in a tab: trained on a packed base, saved without it, resumed with it, lost and recovered, trained further from PEFT files.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { HARD, SETTING, adapterPages } from './adapter-page.mjs';

const { arena, inPage } = adapterPages();

test('a run resumed in another process has the bits of the uninterrupted one, and asks for its base', async () => {
  const whole = await inPage(async ({ s, ...a }, setting) => {
    const base = await a.base(setting);
    await a.start(base, setting);
    const losses = await s.step(6);
    const ended = {
      losses,
      files: await a.adapter(),
      evaluated: (await s.current().evaluate()).loss,
    };
    await s.current().dispose();
    return ended;
  }, HARD);
  const first = await inPage(async ({ s, ...a }, setting) => {
    const base = await a.base(setting);
    // Its small base would be kept with the run, like its data.
    await a.start(base, { ...setting, options: { ...setting.options, keepData: false } });
    const losses = await s.step(3);
    const { run, bytes } = await s.current().save();
    const info = await s.current().info();
    await s.current().dispose();
    return { run, losses, bytes, adapter: info.adapter, of: info.base, size: base.size };
  }, HARD);
  // Factors and two moments of 2 bytes each, vectors of 4; the documents.
  assert.ok(first.bytes <= 3 * first.adapter.bytes + (1 << 20), `${first.bytes} bytes`);
  assert.equal(first.adapter.r, 3);
  assert.equal(first.adapter.targets.length, 14);
  assert.deepEqual(
    first.of.files.map(({ name, bytes }) => [name, bytes]),
    [['base.gguf', first.size]],
  );
  assert.deepEqual(first.of.storage, { Q4_0: 15 });

  await arena.browser.restart();
  const second = await inPage(
    async ({ s, ...a }, { run, setting }) => {
      const base = await a.base(setting);
      const data = { text: setting.text };
      const refused = [];
      for (const given of [
        undefined,
        await a.flipped(base),
        await a.base({ ...setting, seed: 8 }),
      ]) {
        refused.push(
          await s.settled(
            s.tabtune.Trainer.resume({
              run,
              data,
              ...(given && { base: given }),
              worker: s.workers(),
            }).catch((error) => {
              throw Object.assign(error, { message: error.detail.want });
            }),
          ),
        );
      }
      await s.resume({ run, data, base: new File([base], 'moved and renamed.gguf') });
      const losses = await s.step(3);
      const ended = {
        refused,
        losses,
        files: await a.adapter(),
        evaluated: (await s.current().evaluate()).loss,
      };
      // From this point on the page knows it.
      await s.current().dispose();
      await s.resume({ run, data });
      await s.current().dispose();
      return ended;
    },
    { run: first.run, setting: HARD },
  );
  assert.deepEqual([...first.losses, ...second.losses], whole.losses);
  assert.equal(second.evaluated, whole.evaluated);
  assert.deepEqual(second.files, whole.files);
  assert.deepEqual(
    second.refused.map(({ code, word }) => [code, word]),
    [
      ['CHECKPOINT_MISMATCH', 'checkpoint.base.missing'],
      ['INTEGRITY', 'checkpoint.base.mismatch'],
      ['INTEGRITY', 'checkpoint.base.mismatch'],
    ],
  );
  assert.equal(second.refused[0].message, 'base.gguf');
});

for (const type of ['q8_0', ...(process.env.TABTUNE_FULL === undefined ? [] : ['q4_0'])]) {
  test(`a base of ${type} that stays packed gives the bits of its decoded weights`, async () => {
    const [stored, decoded] = await inPage(
      async ({ s, ...a }, setting) => {
        const base = await a.base(setting);
        const ran = [];
        for (const baseStorage of ['stored', 'f32']) {
          await a.start(base, { ...setting, options: { ...setting.options, baseStorage } });
          const losses = await s.step(3);
          const { base: held } = await s.current().info();
          ran.push({
            losses,
            files: await a.adapter(),
            storage: Object.keys(held.storage),
            bytes: held.bytes,
          });
          await s.current().dispose();
        }
        return ran;
      },
      { ...SETTING, type },
    );
    assert.deepEqual([stored.storage, decoded.storage], [[type.toUpperCase()], ['F32']]);
    assert.ok(stored.bytes < decoded.bytes / 2, `${stored.bytes} and ${decoded.bytes}`);
    assert.deepEqual(stored.losses, decoded.losses);
    assert.deepEqual(stored.files, decoded.files);
    assert.ok(stored.losses[2] < stored.losses[0], `${stored.losses}`);
  });
}

test('a run whose GPU is lost recovers its base without asking', async () => {
  const { whole, losses, heard, loaded } = await inPage(async ({ s, ...a }, setting) => {
    const base = await a.base(setting);
    await a.start(base, setting);
    const whole = await s.step(4);
    await s.current().dispose();
    await a.start(base, setting);
    await s.step(2);
    await s.current().save();
    s.timeline.length = 0;
    await s.tell('fire', { action: 'destroy' });
    const losses = await s.step(2);
    const heard = s.timeline.filter(({ type }) => type === 'warning').map(({ code }) => code);
    const { completedSteps } = await s.current().checkpoints.load();
    const loaded = [completedSteps, ...(await s.step(1))];
    await s.current().dispose();
    return { whole, losses, heard, loaded };
  }, SETTING);
  assert.deepEqual(losses, whole.slice(2));
  assert.deepEqual(heard, ['device.lost', 'run.recovered']);
  assert.deepEqual(loaded, [2, whole[2]]);
});

test('PEFT files are exported, and training continues from them', async () => {
  const found = await inPage(async ({ s, ...a }, setting) => {
    const base = await a.base(setting);
    await a.start(base, setting);
    await s.step(2);
    const files = await a.peft();
    const { loss } = await s.current().evaluate();
    await s.current().dispose();
    const open = (options) => s.tabtune.openModel(base, { worker: s.workers(), ...options });
    const { adapter: _, ...rest } = setting.options;
    const went = async (model, adapter) => {
      s.adopt(await a.trainer(model, setting.text, { ...rest, ...(adapter && { adapter }) }));
      const { config } = await s.current().info();
      const ended = [
        (await s.current().evaluate()).loss,
        config.adapter.r,
        config.adapter.dropout,
        config.gradient_checkpointing,
      ];
      await s.current().dispose();
      return ended;
    };
    const beside = await open({ adapter: files });
    const info = beside.adapter;
    const estimate = await s.tabtune.Trainer.estimate(beside, rest);
    const apart = await went(beside);
    const model = await open();
    const wrong = { from: files, r: 5, alpha: 1, dropout: 0.25 };
    const refused = await s.settled(
      a.trainer(model, setting.text, { ...rest, adapter: wrong }).catch((error) => {
        throw Object.assign(error, {
          message: error.detail.refusals.map(({ code, subject }) => `${code} ${subject}`).join(),
        });
      }),
    );
    const from = await went(model, { from: files, r: 3, dropout: 0.25 });
    // Its files alone do not reproduce such a model.
    const changed = await open({ mergeAdapter: files });
    const merged = await s.settled(
      a.trainer(changed, setting.text, { ...rest, adapter: { r: 2 } }),
    );
    return {
      merged,
      names: files.map(({ name }) => name).sort(),
      loss,
      info,
      estimate,
      apart,
      refused,
      from,
    };
  }, SETTING);
  assert.deepEqual(found.names, ['README.md', 'adapter_config.json', 'adapter_model.safetensors']);
  const info = /** @type {import('tabtune').AdapterInfo} */ (found.info);
  assert.deepEqual([info.r, info.alpha, info.targets.length], [3, 6, 14]);
  assert.equal(info.bytes, 4 * info.parameters);
  assert.deepEqual(found.apart, [found.loss, 3, 0, true]);
  assert.deepEqual(found.from, [found.loss, 3, 0.25, true]);
  assert.deepEqual(
    [found.refused.word, found.refused.message],
    ['adapter.settings', 'adapter.settings r,adapter.settings alpha'],
  );
  assert.deepEqual([found.merged.code, found.merged.word], ['BAD_OPTION', 'config.invalid']);
  assert.match(found.merged.message, /an adapter was merged into/);
  const { parts, needBytes } = found.estimate;
  assert.equal(
    Object.values(parts).reduce((sum, part) => sum + part),
    needBytes,
  );
  assert.deepEqual([parts.weights, parts.adapter, parts.grads], [0, info.bytes, info.bytes]);
});

test('impossible settings are refused in one error, and the model stays usable', async () => {
  const found = await inPage(async ({ s, ...a }, setting) => {
    const model = await s.tabtune.openModel(await a.base(setting), { worker: s.workers() });
    const { adapter: _, ...rest } = setting.options;
    const refused = [];
    const make = async (adapter, of = model) => {
      const { code, word, message, detail } = await s.settled(
        a.trainer(of, setting.text, { ...rest, adapter }),
      );
      refused.push([code, word, message, detail?.refusals?.map(({ subject }) => subject)]);
    };
    await make({ rank: 3, targetModules: 7, dropout: 'high' });
    await make({ r: 0, alpha: -1, dropout: 1, layersPattern: 'h' });
    await make({ targetModules: ['q_proj', 'no_such'] });
    await make({ targetModules: ['q_proj'], modulesToSave: ['embed_tokens'] });
    await make(
      { r: 2 },
      await s.tabtune.newModel(setting.shape, { text: setting.text }, { worker: s.workers() }),
    );
    s.adopt(await a.trainer(model, setting.text, { ...rest, adapter: { r: 2 } }));
    const { adapter } = await s.current().info();
    await s.current().dispose();
    // A checkpoint of all weights needs no base.
    const base = await a.base(setting);
    await a.start(base, { ...setting, options: rest });
    const { run } = await s.current().save();
    const none = await s.current().info();
    await s.current().dispose();
    const needless = await s.settled(s.tabtune.Trainer.resume({ run, base, worker: s.workers() }));
    return {
      refused,
      targets: adapter.targets,
      needless: [needless.code, needless.word],
      none: [none.adapter, none.base.files.length, none.base.bytes],
    };
  }, SETTING);
  const [keys, values, unmatched, tied, fresh] = found.refused;
  assert.deepEqual(found.refused.map(([code, word]) => [code, word]).slice(0, 2), [
    ['BAD_OPTION', 'option.invalid'],
    ['BAD_OPTION', 'config.invalid'],
  ]);
  for (const path of ['adapter.rank', 'adapter.targetModules', 'adapter.dropout'])
    assert.ok(keys[2].includes(path), keys[2]);
  const faulty = ['adapter.r', 'adapter.alpha', 'adapter.dropout', 'adapter.layersPattern'];
  for (const path of faulty) assert.ok(values[2].includes(path), values[2]);
  assert.deepEqual([...values[3]].sort(), [...faulty].sort());
  assert.deepEqual([unmatched[1], tied[1]], ['adapter.target.unknown', 'adapter.target.tied']);
  assert.ok(unmatched[2].includes('no_such') && !unmatched[2].includes('q_proj'), unmatched[2]);
  assert.deepEqual([fresh[0], fresh[1]], ['BAD_OPTION', 'config.invalid']);
  assert.deepEqual(found.needless, ['BAD_OPTION', 'config.invalid']);
  assert.deepEqual(found.none, [null, 1, 0]);
  assert.deepEqual(
    found.targets,
    ['q_proj', 'v_proj']
      .flatMap((end) => [0, 1].map((layer) => `model.layers.${layer}.self_attn.${end}`))
      .sort(),
  );
});
