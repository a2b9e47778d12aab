// Resources that a trainer holds and releases: its worker through a bundler, the database at a refused import, the run at a refused load, GPU memory
// at `dispose`.
import assert from 'node:assert/strict';
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { build } from 'esbuild';
import { built } from '../../web/core-kind.mjs';
import { root } from '../../web/toolchain.mjs';
import { Arena, TINY } from '../torture/arena.mjs';

let folder;

/** Bundles a user's own worker of one line, with a bundler that drops code without side effects. */
async function bundledWorker(place) {
  const installed = join(place, 'node_modules', 'tabtune');
  mkdirSync(installed, { recursive: true });
  copyFileSync(join(root, 'package.json'), join(installed, 'package.json'));
  // A copy: with a link the bundler would consult another package.json about which modules have side effects.
  cpSync(join(root, built.package), join(installed, 'dist'), { recursive: true });
  writeFileSync(join(place, 'mine.js'), "import 'tabtune/worker';\n");
  await build({
    entryPoints: [join(place, 'mine.js')],
    outfile: join(place, 'bundle', 'worker.js'),
    bundle: true,
    format: 'esm',
    minify: true,
    logLevel: 'error',
  });
  copyFileSync(
    join(root, built.package, 'tabtune_bg.wasm'),
    join(place, 'bundle', 'tabtune_bg.wasm'),
  );
}

const arena = Arena.ofTests(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tabtune-keeping-'));
  await bundledWorker(folder);
  return { folders: { '/bundle/': join(folder, 'bundle') } };
});
test.afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("a user's own worker keeps the package's through tree shaking, and trains", async () => {
  const losses = await arena.inPage(async (s, { shape, text, options }) => {
    const worker = () => new Worker('/bundle/worker.js', { type: 'module' });
    const model = await s.tabtune.newModel(shape, { text }, { worker });
    const trainer = await s.tabtune.Trainer.create({ model, data: { text }, ...options });
    const losses = (await trainer.step(2)).map(({ loss }) => loss);
    await trainer.dispose();
    return losses;
  }, TINY);
  assert.deepEqual(losses, (await arena.truth(TINY, 2)).losses.slice(1, 3));
});

test('a refused import leaves no run, no piece and no history behind', async () => {
  const { refused, before, after } = await arena.inPage(async (s, setting) => {
    await s.create(setting);
    await s.step(1);
    await s.current().save();
    const whole = new Uint8Array(await (await s.current().checkpoints.exportFile()).arrayBuffer());
    await s.current().dispose();
    const stored = async () => {
      const base = await s.database();
      const keys = {};
      for (const name of base.objectStoreNames) {
        const request = base.transaction(name).objectStore(name).getAllKeys();
        keys[name] = await new Promise(
          (resolve) => (request.onsuccess = () => resolve(request.result.map(String))),
        );
      }
      base.close();
      return keys;
    };
    const before = await stored();
    whole[whole.length - 1] ^= 1;
    const refused = [];
    const runs = await s.runs();
    for (const file of [new Blob([whole]), new Blob([whole.slice(0, -1)])]) {
      const { ok, code, word } = await s.settled(runs.importFile(file));
      refused.push([ok, code, word]);
    }
    return { refused, before, after: await stored() };
  }, TINY);
  assert.deepEqual(refused, [
    [false, 'CHECKPOINT_CORRUPT', 'checkpoint.container.chunk'],
    [false, 'CHECKPOINT_CORRUPT', 'checkpoint.container.length'],
  ]);
  assert.deepEqual(after, before);
});

test('loading a checkpoint into a running trainer is refused, and the run continues unchanged', async () => {
  const { refused, losses } = await arena.inPage(async (s, setting) => {
    await s.create(setting);
    await s.step(1);
    await s.current().save();
    let refused;
    for await (const event of s.current().run({ maxSteps: 4 })) {
      if (event.type === 'step' && refused === undefined)
        refused = await s.settled(s.current().checkpoints.load());
    }
    await s.current().dispose();
    return { refused, losses: s.losses().found };
  }, TINY);
  assert.deepEqual([refused?.ok, refused?.code, refused?.word], [false, 'BUSY', 'loop.running']);
  const { losses: truth } = await arena.truth(TINY, 5);
  assert.deepEqual(losses, Object.fromEntries([1, 2, 3, 4, 5].map((step) => [step, truth[step]])));
});

test('dispose frees the GPU memory of a trainer', async () => {
  const MIB = 2 ** 20;
  await arena.with(async (subject) => {
    // A trainer of the same kind first, so that memory that the browser itself keeps exists before the measurement.
    await subject.do(async (s, setting) => {
      await s.create(setting);
      await s.step(1);
      await s.current().dispose();
    }, TINY);
    await new Promise((done) => setTimeout(done, 500));
    const empty = arena.browser.gpuBytes();
    const sizes = { vocab: 32768, hidden: 256, intermediate: 512, layers: 1, heads: 4, kvHeads: 4 };
    await subject.do(
      async (s, setting) => {
        await s.create(setting);
        await s.step(1);
      },
      {
        ...TINY,
        sizes,
        options: { ...TINY.options, validationFraction: 0, gradientAccumulationSteps: 1 },
      },
    );
    const full = arena.browser.gpuBytes();
    await subject.do((s) => s.current().dispose());
    let left = Infinity;
    for (
      const until = Date.now() + 5000;
      Date.now() < until && left > 24 * MIB;
      await new Promise((done) => setTimeout(done, 50))
    ) {
      left = arena.browser.gpuBytes() - empty;
    }
    assert.ok(
      full - empty > 100 * MIB,
      `the trainer took ${((full - empty) / MIB).toFixed(0)} MiB`,
    );
    assert.ok(
      left <= 24 * MIB,
      `${(left / MIB).toFixed(1)} of ${((full - empty) / MIB).toFixed(1)} MiB are left after dispose`,
    );
  });
});
