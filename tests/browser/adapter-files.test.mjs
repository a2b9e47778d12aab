// Adapters and their bases in a tab, apart from training: an adapter extracted from two models, with the same bytes as natively; detached again;
// bases found again; exported for llama.cpp and merged.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { root } from '../../web/toolchain.mjs';
import { TINY } from '../torture/arena.mjs';
import { SETTING, SHAPE, adapterPages } from './adapter-page.mjs';

const GOLDEN = join(root, 'tests', 'golden');
const expected = JSON.parse(readFileSync(join(GOLDEN, 'adapters', 'extracted.json'), 'utf8'));
const OPTIONS = {
  ...TINY.options,
  steps: 6,
  learningRate: 1e-2,
  gradientAccumulationSteps: 1,
  gradientCheckpointing: true,
};
/** One layer with an adapter of rank 2. */
const SMALL = {
  shape: { ...SHAPE, numHiddenLayers: 1 },
  text: TINY.text,
  type: 'q4_0',
  options: {
    ...OPTIONS,
    adapter: { r: 2, targetModules: 'all-linear', modulesToSave: ['model.norm'] },
  },
};

const { inPage } = adapterPages({ folders: { '/golden/': 'tests/golden/models' } });

test('an adapter extracted from two models has the same bytes as from the terminal program, for every target', async () => {
  const { sums, report, written, shape, rank, names } = await inPage(async ({ s }) => {
    const base = new File([await (await fetch('/golden/llama3.gguf')).blob()], 'llama3.gguf');
    const bytes = new Uint8Array(await base.arrayBuffer());
    for (let at = bytes.length - 12000; at < bytes.length; at += 28) bytes[at + 2] ^= 0x20;
    const tuned = new File([bytes], 'tuned.gguf');
    const make = (more) =>
      s.tabtune.extractAdapter({ tuned, base, r: 3, worker: s.workers(), ...more });
    const progress = [];
    const { files, report, warnings } = await make({
      onProgress: ({ phase, loaded, total }) => progress.push([phase, loaded <= total]),
    });
    if (warnings.length > 0 || progress.some(([, sound]) => !sound))
      throw new Error('a warning, or progress beyond its end');
    const sums = Object.fromEntries(
      await Promise.all(files.map(async ({ name, blob }) => [name, await s.digest(blob)])),
    );
    const folder = await (
      await navigator.storage.getDirectory()
    ).getDirectoryHandle('extracted', { create: true });
    await make({ to: folder });
    const written = {};
    for await (const [name, handle] of folder.entries())
      written[name] = await s.digest(await /** @type {FileSystemFileHandle} */ (handle).getFile());
    const other = new File([await (await fetch('/golden/qwen2.gguf')).blob()], 'qwen2.gguf');
    const stop = new AbortController();
    stop.abort();
    return {
      sums,
      report,
      written,
      shape: await s.settled(make({ base: other })),
      rank: [
        await s.settled(make({ r: 0 })),
        await s.settled(make({ r: 4000 })),
        await s.settled(make({ targetModules: ['no_such'] })),
        await s.settled(make({ rank: 3 })),
        await s.settled(make({ signal: stop.signal })),
      ],
      names: [...new Set(progress.map(([phase]) => phase))],
    };
  });
  const { 'tabtune.receipt.json': receipt, ...files } = sums;
  assert.deepEqual(files, expected.files);
  assert.ok(receipt);
  assert.deepEqual(written, sums);
  assert.equal(report.error, expected.error);
  assert.deepEqual(
    [report.rank, Object.keys(report.tensors).length, Object.keys(report.uncovered).length],
    [3, expected.tensors, expected.uncovered],
  );
  assert.deepEqual([shape.code, shape.word], ['BAD_MODEL_FILE', 'extract.shape']);
  assert.deepEqual(
    rank.map(({ code, word, name }) => [code, word, name]),
    [
      ['BAD_OPTION', 'option.invalid', 'TabtuneError'],
      ['BAD_OPTION', 'config.invalid', 'TabtuneError'],
      ['BAD_OPTION', 'adapter.target.unknown', 'TabtuneError'],
      ['BAD_OPTION', 'option.invalid', 'TabtuneError'],
      ['ABORTED', 'call.aborted', 'AbortError'],
    ],
  );
  for (const phase of ['read', 'export']) assert.ok(names.includes(phase), `${names}`);
});

test('after its adapter is set to null, a model answers every call as its base', async () => {
  const found = await inPage(async ({ s, ...a }, setting) => {
    const base = await a.base(setting);
    await a.start(base, setting);
    await s.step(3);
    const files = await a.peft();
    await s.current().dispose();
    const { adapter: _, ...options } = setting.options;
    const open = (more) => s.tabtune.openModel(base, { worker: s.workers(), ...more });
    const answers = async (model) => {
      s.adopt(await s.tabtune.Trainer.create({ model, data: { text: setting.text }, ...options }));
      const texts = [];
      for await (const { text } of s.current().sample('It', { maxTokens: 8, temperature: 0 }))
        texts.push(text);
      const loss = (await s.current().evaluate()).loss;
      const { adapter } = await s.current().info();
      await s.current().dispose();
      return { loss, text: texts.join(''), adapter };
    };
    const plain = await answers(await open());
    const adapted = await answers(await open({ adapter: files }));
    const model = await open({ adapter: files });
    const before = [model.adapter?.r, model.exports.length];
    const wrong = [];
    for (const value of [undefined, {}, model.adapter])
      wrong.push(await s.settled((async () => (model.adapter = /** @type {any} */ (value)))()));
    model.adapter = null;
    const now = model.adapter;
    const norm = [...(await model.tensor('model.norm.weight')).values];
    const weights = await model.exportFiles({ dtype: 'f32' });
    const after = [
      model.info.adapter,
      model.exports.some(({ ok }) => ok),
      model.contract !== undefined,
      weights.length > 2,
    ];
    return { plain, adapted, before, wrong, now, norm, after, again: await answers(model) };
  }, SMALL);
  assert.deepEqual(
    found.wrong.map(({ code, word }) => [code, word]),
    Array(3).fill(['BAD_OPTION', 'option.invalid']),
  );
  assert.deepEqual(
    [found.before, found.now, found.after],
    [[2, 0], null, [null, true, true, true]],
  );
  assert.ok(
    found.norm.every((value) => value === 1),
    `${found.norm}`,
  );
  assert.equal(found.adapted.adapter.r, 2);
  assert.ok(
    Math.abs(found.adapted.loss / found.plain.loss - 1) > 1e-4,
    `${found.adapted.loss} and ${found.plain.loss}`,
  );
  assert.deepEqual(found.again, found.plain);
});

test('a base given as a handle or a URL is found and verified in another page', async () => {
  const first = await inPage(async ({ s, ...a }, setting) => {
    const root = await navigator.storage.getDirectory();
    const folder = await root.getDirectoryHandle('bases', { create: true });
    const put = async (name, file) => {
      const writable = await (await folder.getFileHandle(name, { create: true })).createWritable();
      await writable.write(file);
      await writable.close();
      return folder.getFileHandle(name);
    };
    const handle = await put('base.gguf', await a.base(setting));
    await put('elsewhere.gguf', await handle.getFile());
    // A small file would be kept with the run otherwise.
    await a.start(handle, { ...setting, options: { ...setting.options, keepData: false } });
    const losses = await s.step(2);
    const { run } = await s.current().save();
    const fork = await s.current().checkpoints.fork();
    losses.push(...(await s.step(2)));
    await s.current().dispose();
    const url = new URL('/golden/llama3.gguf', location.href);
    const model = await s.tabtune.openModel(url, { worker: s.workers() });
    const tokens = Uint32Array.from({ length: 400 }, (_, at) => (at * at) % 11);
    s.adopt(
      await s.tabtune.Trainer.create({
        model,
        data: { tokens },
        ...setting.options,
        adapter: { r: 2 },
      }),
    );
    await s.step(1);
    const ofUrl = await s.current().save();
    const next = await s.step(1);
    await s.current().dispose();
    return { run, losses, fork: fork.run, ofUrl: ofUrl.run, next, data: { text: setting.text } };
  }, SMALL);

  const second = await inPage(async ({ s, ...a }, { run, fork, ofUrl, data }) => {
    const goOn = async (given, steps) => {
      await s.resume(given);
      const losses = await s.step(steps);
      return losses;
    };
    const losses = await goOn({ run, data }, 2);
    // The base of the adapter, into which it is merged, is available as well.
    const merged = (await s.current().exportFiles({ dtype: 'f32' })).map(({ name }) => name);
    await s.current().dispose();
    const forked = await goOn({ run: fork, data }, 1);
    await s.current().dispose();
    const next = await goOn({ run: ofUrl }, 1);
    await s.current().dispose();
    const root = await navigator.storage.getDirectory();
    const folder = await root.getDirectoryHandle('bases');
    const handle = await folder.getFileHandle('base.gguf');
    const changed = await a.flipped(await handle.getFile());
    const writable = await handle.createWritable();
    await writable.write(changed);
    await writable.close();
    const resumed = () => s.settled(s.tabtune.Trainer.resume({ run, data, worker: s.workers() }));
    const refused = [await resumed()];
    // The flipped bit is in no header.
    await s.resume({ run, data, verify: 'header' });
    const { base: loose } = await s.current().details();
    await s.current().dispose();
    await folder.removeEntry('base.gguf');
    refused.push(await resumed());
    await s.resume({ run, data, base: await folder.getFileHandle('elsewhere.gguf') });
    await s.current().dispose();
    return { losses, merged, forked, next, refused, loose: loose.verified };
  }, first);

  const third = await inPage(async ({ s }, { run, data }) => {
    await s.resume({ run, data });
    const { completedSteps } = await s.current().info();
    await s.current().dispose();
    return completedSteps;
  }, first);
  assert.deepEqual(second.losses, first.losses.slice(2));
  assert.deepEqual(second.forked, second.losses.slice(0, 1));
  assert.deepEqual(second.next, first.next);
  assert.ok(second.merged.includes('model.safetensors'), `${second.merged}`);
  assert.deepEqual(
    second.refused.map(({ code, word }) => [code, word]),
    [
      ['INTEGRITY', 'checkpoint.base.mismatch'],
      ['CHECKPOINT_MISMATCH', 'checkpoint.base.missing'],
    ],
  );
  assert.equal(second.loose, 'header');
  assert.ok(third >= 2);
});

test('an adapter is exported as a file for llama.cpp, and merged into its base', async () => {
  const found = await inPage(async ({ s, ...a }, setting) => {
    const { modulesToSave: saved, ...adapter } = setting.options.adapter;
    const base = await a.base(setting);
    const whole = async (options) => {
      const [file] = (await s.current().exportFiles(options)).filter(({ name }) =>
        name.endsWith('.gguf'),
      );
      return new File([file.blob], file.name);
    };
    await a.start(base, {
      ...setting,
      options: { ...setting.options, adapter: { ...adapter, rslora: true } },
    });
    await s.step(4);
    const { loss } = await s.current().evaluate();
    const alone = await whole({ format: 'gguf-adapter' });
    const merged = await whole({ format: 'gguf', type: 'f32' });
    await s.current().dispose();
    const { files } = await s.tabtune.inspectFiles(alone, { worker: s.workers() });
    await a.start(merged, { ...setting, options: { ...setting.options, adapter: null } });
    const again = (await s.current().evaluate()).loss;
    await s.current().dispose();
    // llama.cpp has no place for modules that are trained in full.
    await a.start(base, {
      ...setting,
      options: { ...setting.options, adapter: { ...adapter, modulesToSave: saved } },
    });
    const refused = await s.settled(whole({ format: 'gguf-adapter' }));
    await s.current().dispose();
    return { loss, again, tensors: files[0].tensors, refused: [refused.code, refused.word] };
  }, SETTING);
  // The merged values are rounded to f32 once.
  assert.ok(Math.abs(found.again / found.loss - 1) < 1e-5, `${found.again} and ${found.loss}`);
  assert.equal(found.tensors, 28);
  assert.deepEqual(found.refused, ['BAD_OPTION', 'export.lora.unrepresentable']);
});
