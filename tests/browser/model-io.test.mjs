// The kinds of files, the formats a model can be converted to, and the completeness of copies: inspected, exported, verified and opened again, in a
// real browser.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { Arena, TINY } from '../torture/arena.mjs';

const RECEIPT = 'tabtune.receipt.json';
const PIECE = 64 << 10;
/** The files of a Hugging Face folder. */
const FOLDER = ['config.json', 'model.safetensors'];

let folder;

/** Returns a safetensors file whose header fills more than one piece, and its payload several, with the number of bytes before the payload. */
function headed(path) {
  const header = {};
  const bytes = 512;
  for (let index = 0; index < 1200; index++)
    header[`blocks.${String(index).padStart(4, '0')}.weight`] = {
      dtype: 'F32',
      shape: [bytes / 4],
      data_offsets: [index * bytes, (index + 1) * bytes],
    };
  const text = JSON.stringify(header);
  const padded = text.padEnd(Math.ceil(text.length / 8) * 8);
  const front = Buffer.alloc(8);
  front.writeBigUInt64LE(BigInt(padded.length));
  writeFileSync(path, Buffer.concat([front, Buffer.from(padded), Buffer.alloc(1200 * bytes)]));
  return 8 + padded.length;
}

const arena = Arena.ofTests(() => {
  folder = mkdtempSync(join(tmpdir(), 'tabtune-headed-'));
  return { folders: { '/models/': 'tests/golden/models', '/headed/': folder } };
});
test.afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('an inspection reports the kind of files and their refusals', async () => {
  const { whole, adapterless, cut, read } = await arena.inPage(async (s, names) => {
    const fetched = async (path) => (await fetch(path)).blob();
    const files = await Promise.all(
      names.map(async (name) => new File([await fetched(`/models/llama3/${name}`)], name)),
    );
    const gguf = await fetched('/models/llama3.gguf');
    const adapterless = new File(['{"peft_type":"LORA"}'], 'adapter_config.json');
    return {
      whole: await s.tabtune.inspectFiles(files),
      read: await s.tabtune.inspectFiles(files, { read: true }),
      adapterless: await s.tabtune.inspectFiles(adapterless),
      cut: await s.tabtune.inspectFiles(new File([gguf.slice(0, gguf.size - 200)], 'cut.gguf')),
    };
  }, FOLDER);
  assert.equal(whole.kind, 'model');
  assert.deepEqual(whole.refusals, []);
  assert.ok(
    whole.tensors.length > 10 &&
      whole.tensors.every(({ name, dtype, shape }) => name && dtype && Array.isArray(shape)),
  );
  assert.deepEqual([whole.trainable.ok, whole.trainable.reason], [true, undefined]);
  const sizes = whole.trainable.options
    .filter(({ optimizer, precision }) => optimizer === 'adamw' && precision === 'f32')
    .map(({ bytes }) => bytes);
  assert.ok(sizes.length === 1 && sizes[0] > 0, JSON.stringify(whole.trainable.options));
  const folderOf = whole.exports.find(({ format }) => format === 'safetensors');
  assert.ok(folderOf?.ok && Number(folderOf.bytes) > 0, JSON.stringify(whole.exports));
  assert.ok(
    whole.exports.every(({ ok, reason }) => ok || reason),
    'what is not possible has a reason',
  );
  assert.ok(whole.contract?.contract_digest);
  assert.equal(read.kind, 'model');
  assert.equal(adapterless.kind, 'adapter');
  assert.equal(adapterless.trainable.ok, false);
  assert.equal(adapterless.files[0].ok, false);
  assert.deepEqual(
    [cut.files[0].ok, cut.files[0].code, cut.refusals[0].code],
    [false, 'gguf.data.truncated', 'gguf.data.truncated'],
  );
  assert.equal(cut.trainable.ok, false);
});

test('line 31: a URL costs its header, rounded up to 64 KiB', async () => {
  const front = headed(join(folder, 'model.safetensors'));
  arena.site.ranges.length = 0;
  const { file, failed } = await arena.inPage(async (s) => {
    const url = (name) => new URL(name, location.href);
    const { files } = await s.tabtune.inspectFiles(url('/headed/model.safetensors'));
    const failed = await s.settled(s.tabtune.inspectFiles(url('/headed/absent.safetensors')));
    return { file: files[0], failed };
  });
  assert.deepEqual([file.ok, file.tensors], [true, 1200]);
  const asked = arena.site.ranges.filter(([path]) => path === '/headed/model.safetensors');
  assert.equal(
    asked.reduce((sum, [, , bytes]) => sum + bytes, 0),
    Math.ceil(front / PIECE) * PIECE,
    JSON.stringify(asked),
  );
  assert.ok(front > PIECE);
  assert.deepEqual([failed.ok, failed.word], [false, 'source.download']);
});

test('a model written to a folder comes back the same, and one changed byte is found', async () => {
  const found = await arena.inPage(async (s, receiptName) => {
    const gguf = new File([await (await fetch('/models/llama3.gguf')).blob()], 'llama3.gguf');
    const home = await navigator.storage.getDirectory();
    const target = await home.getDirectoryHandle(`export-${crypto.randomUUID()}`, { create: true });
    const model = await s.tabtune.openModel(gguf, { worker: s.workers() });
    const { exports, receipt: opened } = model;
    const [{ name }] = model.info.tensors;
    const before = await model.tensor(name);
    const absent = await s.settled(model.tensor('no such tensor'));
    const receipt = await model.exportTo(target, { card: { license: 'mit', data: 'none' } });
    await model.dispose();
    const names = [];
    for await (const key of target.keys()) names.push(key);
    const file = async (key) => (await target.getFileHandle(key)).getFile();
    const sum = await s.digest(await file('model.safetensors'));
    const verified = await s.tabtune.verifyFiles(target);
    const given = await s.tabtune.verifyFiles(target, { receipt });
    const again = await s.tabtune.openModel(target, { worker: s.workers() });
    const after = await again.tensor(name);
    await again.dispose();
    const weights = new Uint8Array(await (await file('model.safetensors')).arrayBuffer());
    weights[weights.length - 7] ^= 1;
    const others = await Promise.all(names.filter((key) => key !== 'model.safetensors').map(file));
    const flipped = await s.tabtune.verifyFiles([
      ...others,
      new File([weights], 'model.safetensors'),
    ]);
    const written = JSON.parse(
      String(await others.find((each) => each.name === receiptName)?.text()),
    );
    await home.removeEntry(target.name, { recursive: true });
    const equal =
      before.values.length === after.values.length &&
      before.values.every((value, index) => value === after.values[index]);
    return {
      exports,
      opened,
      absent,
      receipt,
      names,
      sum,
      verified,
      given,
      flipped,
      equal,
      count: before.values.length,
      shape: before.shape,
      written,
    };
  }, RECEIPT);
  assert.ok(found.exports.some(({ format, ok }) => format === 'safetensors' && ok));
  assert.equal(found.opened?.operation, 'import');
  assert.deepEqual([found.absent.ok, found.absent.word], [false, 'plan.tensor.unknown']);
  assert.ok(
    found.names.includes('config.json') && found.names.includes(RECEIPT),
    JSON.stringify(found.names),
  );
  assert.deepEqual(found.written, found.receipt);
  const outputs = /** @type {{ name: string, sha256: string }[]} */ (found.receipt?.outputs);
  assert.equal(outputs.find(({ name }) => name === 'model.safetensors')?.sha256, found.sum);
  assert.ok(found.verified.ok && found.given.ok, JSON.stringify([found.verified, found.given]));
  assert.equal(found.flipped.ok, false);
  assert.ok(
    found.flipped.checks.some(({ result }) => result === 'differs'),
    JSON.stringify(found.flipped),
  );
  assert.ok(
    found.equal && found.count === found.shape.reduce((product, size) => product * size, 1),
  );
});

test('a trained model has equal bytes in a folder, a file and a stream', async () => {
  const { sums, folder, reopened, trained, exports } = await arena.inPage(async (s, setting) => {
    await s.create(setting);
    await s.step(2);
    const trainer = s.current();
    const home = await navigator.storage.getDirectory();
    const target = await home.getDirectoryHandle(`run-${crypto.randomUUID()}`, { create: true });
    const receipt = await trainer.exportTo(target);
    const folder = Object.fromEntries(
      await Promise.all(
        (await trainer.exportFiles()).map(async ({ name, blob }) => [
          name,
          [
            await s.digest(blob),
            await s.digest(await (await target.getFileHandle(name)).getFile()),
          ],
        ]),
      ),
    );
    const handle = await home.getFileHandle(`${crypto.randomUUID()}.gguf`, { create: true });
    await trainer.exportTo(handle, { format: 'gguf', type: 'f16' });
    const chunks = [];
    await trainer.exportTo(new WritableStream({ write: (chunk) => void chunks.push(chunk) }), {
      format: 'gguf',
      type: 'f16',
    });
    const files = [
      await handle.getFile(),
      new Blob(chunks),
      await trainer.export({ format: 'gguf', type: 'f16' }),
    ];
    const sums = await Promise.all(files.map(s.digest));
    const { exports } = await trainer.details();
    const trained = (await s.digests())['model.safetensors'];
    await trainer.dispose();
    const again = await s.tabtune.openModel(target, { worker: s.workers() });
    const [reopened] = (await again.exportFiles()).filter(
      ({ name }) => name === 'model.safetensors',
    );
    await again.dispose();
    await home.removeEntry(target.name, { recursive: true });
    await home.removeEntry(handle.name);
    return { sums, folder, reopened: await s.digest(reopened.blob), trained, exports, receipt };
  }, TINY);
  assert.equal(new Set(sums).size, 1, JSON.stringify(sums));
  for (const [name, [gathered, written]] of Object.entries(folder))
    assert.equal(written, gathered, name);
  assert.equal(reopened, trained);
  assert.ok(
    exports.some(({ format, type, ok }) => format === 'gguf' && type === 'f16' && ok),
    JSON.stringify(exports),
  );
});

test('an aborted export leaves no receipt, and the run continues', async () => {
  const { failed, names, aborted, next, retried } = await arena.inPage(async (s, setting) => {
    await s.create(setting);
    await s.step(1);
    const trainer = s.current();
    const home = await navigator.storage.getDirectory();
    const target = await home.getDirectoryHandle(`cut-${crypto.randomUUID()}`, { create: true });
    const controller = new AbortController();
    let from = 0;
    const onProgress = () => {
      if (from === 0) from = performance.now();
      controller.abort();
    };
    const failed = await s.settled(
      trainer.exportTo(target, { signal: controller.signal, onProgress }),
    );
    const aborted = performance.now() - from;
    const names = [];
    for await (const key of target.keys()) names.push(key);
    const next = await s.step(1);
    const retried = await trainer.exportTo(target);
    await trainer.dispose();
    await home.removeEntry(target.name, { recursive: true });
    return { failed, names, aborted, next, retried };
  }, TINY);
  assert.equal(failed.ok, false, 'the whole export came before its abort');
  assert.equal(failed.name, 'AbortError');
  assert.ok(aborted < 500, `${aborted} ms`);
  assert.ok(!names.includes(RECEIPT), JSON.stringify(names));
  assert.equal(next.length, 1);
  assert.equal(retried.operation, 'export');
});
