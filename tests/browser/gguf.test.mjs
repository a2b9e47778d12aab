// A trained model is exported as a GGUF file, and this file opens again with the same weights.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { Arena, TINY } from '../torture/arena.mjs';

const arena = Arena.ofTests({ folders: { '/models/': 'tests/golden/models' } });

test('a character model exported as GGUF opens with the same weights', async () => {
  const { trained, again, tokenizer, bytes, names } = await arena.inPage(async (s, setting) => {
    await s.create(setting);
    await s.step(2);
    const trained = (await s.digests())['model.safetensors'];
    const bytes = {};
    for (const type of ['f32', 'f16', 'q8_0'])
      bytes[type] = (await s.current().export({ format: 'gguf', type })).size;
    const [file, receipt, ...more] = await s.current().exportFiles({ format: 'gguf' });
    const names = [file.name, receipt.name, more.length];
    await s.current().dispose();
    const model = await s.tabtune.openModel(new File([file.blob], file.name), {
      worker: s.workers(),
    });
    const { tokenizer } = model.info;
    s.adopt(
      await s.tabtune.Trainer.create({ model, data: { text: setting.text }, ...setting.options }),
    );
    const again = (await s.digests())['model.safetensors'];
    await s.current().dispose();
    return { trained, again, tokenizer, bytes, names };
  }, TINY);
  assert.equal(again, trained);
  assert.equal(tokenizer?.kind, 'characters');
  assert.deepEqual(names, ['model.gguf', 'tabtune.receipt.json', 0]);
  assert.ok(bytes.f32 > bytes.f16 && bytes.f16 >= bytes.q8_0, JSON.stringify(bytes));
});

test('a model opened from GGUF is exported into the same file', async () => {
  const { untouched, trained, given, refused } = await arena.inPage(async (s, options) => {
    const base = new File([await (await fetch('/models/llama3.gguf')).blob()], 'llama3.gguf');
    const other = new File([await (await fetch('/models/qwen2.gguf')).blob()], 'qwen2.gguf');
    const model = await s.tabtune.openModel(base, { worker: s.workers() });
    const tokens = Uint32Array.from({ length: 400 }, (_, i) => (i * i + i) % model.info.vocabSize);
    s.adopt(await s.tabtune.Trainer.create({ model, data: { tokens }, ...options }));
    const patched = async () => s.digest(await s.current().export({ format: 'gguf', base }));
    const untouched = await patched();
    await s.step(1);
    const trained = await patched();
    const refused = await s.settled(s.current().export({ format: 'gguf', base: other }));
    await s.current().dispose();
    return { untouched, trained, given: await s.digest(base), refused };
  }, TINY.options);
  assert.equal(untouched, given, 'without a step the file is the base, byte for byte');
  assert.notEqual(trained, given);
  assert.deepEqual([refused.ok, refused.word], [false, 'export.gguf.base']);
});
