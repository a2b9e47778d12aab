// Unusual arguments of callers: functions that throw, values of another frame, files that change.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { scenarios, setting } from './scenario.mjs';

const { inPage } = scenarios();

test("a caller's function that throws is reported, and the run loses nothing", async () => {
  const seen = await inPage(async ({ tabtune, failure, openWorkers }, argument) => {
    const workers = openWorkers();
    const { shape, text, options } = argument;
    const reported = new Set();
    addEventListener('error', (event) => {
      reported.add(event.error.message);
      event.preventDefault();
    });
    const fails = (/** @type {string} */ name) => () => {
      throw new Error(name);
    };
    const throwing = (/** @type {string} */ name) => ({ onProgress: fails(name) });
    const model = await tabtune.newModel(shape, { text }, throwing('newModel'));
    const given = { model, data: { text }, ...options };
    const trainer = await tabtune.Trainer.create({ ...given, ...throwing('create') });
    const { checkpoints, runId: run } = trainer;
    trainer.addEventListener('step', fails('listener'));
    const first = await trainer.step(2);
    await trainer.save(throwing('save'));
    await trainer.export(throwing('export'));
    const file = await checkpoints.exportFile(throwing('exportFile'));
    await checkpoints.load(throwing('load'));
    await checkpoints.importFile(file, throwing('importFile'));
    const rest = await trainer.step(1);
    const left = [trainer.state, trainer.completedSteps, first.length, rest[0].step];
    await trainer.dispose();
    const resumed = await tabtune.Trainer.resume({ run, ...throwing('resume') });
    left.push(resumed.completedSteps);
    await resumed.dispose();
    const factory = await failure(tabtune.newModel(shape, { text }, { worker: fails('factory') }));
    return { left, reported: [...reported], factory, workers: workers.size };
  }, setting());
  assert.deepEqual(seen.left, ['paused', 3, 2, 3, 2]);
  const calls = ['create', 'save', 'export', 'exportFile', 'load', 'importFile', 'resume'];
  for (const name of [...calls, 'listener']) assert.ok(seen.reported.includes(name), name);
  assert.deepEqual([seen.factory.code, seen.factory.path], ['WORKER_CRASHED', 'worker']);
  assert.equal(seen.workers, 0);
});

test('inputs of another frame are recognised by their kind', async () => {
  const seen = await inPage(async ({ tabtune, failure, openWorkers }, argument) => {
    const workers = openWorkers();
    const frame = document.body.appendChild(document.createElement('iframe'));
    const other = /** @type {Window & typeof globalThis} */ (frame.contentWindow);
    const { text, shape, options } = argument;
    const bytes = new TextEncoder().encode(text);
    /** @type {Blob | undefined} */
    let gguf;
    const trained = async (/** @type {import('tabtune').DataInput} */ data) => {
      const model = await tabtune.newModel(shape, { text });
      const trainer = await tabtune.Trainer.create({ model, data, ...options });
      const { digest, tokens } = trainer.data;
      const { dataName } = await trainer.save();
      gguf ??= await trainer.export({ format: 'gguf' });
      await trainer.dispose();
      return { dataName, digest, tokens };
    };
    const truth = await trained({ text });
    const address = { value: `${location.origin}/100%.txt` };
    const all = {
      response: await trained(new Response(text)),
      blob: await trained(new other.Blob([text])),
      file: await trained(new other.File([text], 'a.txt')),
      bytes: await trained(bytes),
      buffer: await trained(new other.Uint8Array(bytes).buffer),
      fetched: await trained(Object.defineProperty(new Response(text), 'url', address)),
    };
    const opened = await tabtune.openModel(new other.File([/** @type {Blob} */ (gguf)], 'm.gguf'));
    const { architecture } = opened.info;
    await opened.dispose();
    const read = new Response(text);
    await read.text();
    const reader = { name: 'r', size: 4 };
    const gone = () => {
      throw new Error('the disk is gone');
    };
    const bad = {
      undefinedText: { text: undefined },
      list: { text: ['a', 'b'] },
      functionText: { text: () => 'a' },
      name: { text, name: 5 },
      read,
      missing: new Response('not here', { status: 404 }),
      promise: Promise.resolve(text),
      tokens: { tokens: [1, 2] },
      stream: new Response(text).body,
      reader: { ...reader, read: () => 'abcd' },
      failing: { ...reader, read: gone },
    };
    const refused = /** @type {Record<keyof typeof bad, { code: string, message: string }>} */ ({});
    for (const [kind, data] of Object.entries(bad))
      refused[kind] = await failure(tabtune.newModel(shape, /** @type {any} */ (data)));
    frame.remove();
    return { truth, all, architecture, refused, workers: workers.size };
  }, setting());
  for (const [kind, { digest, tokens }] of Object.entries(seen.all))
    assert.deepEqual([digest, tokens], [seen.truth.digest, seen.truth.tokens], kind);
  assert.ok(seen.truth.digest.length > 0);
  assert.deepEqual([seen.all.file.dataName, seen.all.fetched.dataName], ['a.txt', '100%.txt']);
  assert.equal(seen.architecture, 'llama');
  for (const [kind, { code, message }] of Object.entries(seen.refused))
    assert.match(code, /^(BAD_OPTION|BAD_MODEL_FILE)$/, `${kind}: ${message}`);
  const { functionText, promise, missing, failing } = seen.refused;
  assert.match(functionText.message, /data\.text: expected a string, found a function/);
  assert.match(promise.message, /found a Promise/);
  assert.match(missing.message, /HTTP 404/);
  assert.match(failing.message, /the disk is gone/);
  assert.equal(seen.workers, 0);
});

test('data are read as they were when they were passed, even if the caller changes them', async () => {
  const seen = await inPage(async ({ tabtune, failure, losses }, argument) => {
    const { text, shape, options } = argument;
    const root = await navigator.storage.getDirectory();
    const put = async (/** @type {FileSystemFileHandle} */ handle, /** @type {string} */ words) => {
      const out = await handle.createWritable();
      await out.write(words);
      await out.close();
    };
    const run = async (
      /** @type {import('tabtune').DataInput} */ data,
      /** @type {() => Promise<void> | void} */ spoil,
    ) => {
      const model = await tabtune.newModel(shape, { text });
      const trainer = await tabtune.Trainer.create({ model, data, ...options });
      await spoil();
      const before = await losses(trainer, 2);
      await trainer.save();
      await trainer.checkpoints.load();
      const after = await losses(trainer, 1);
      await trainer.save();
      await trainer.dispose();
      const again = await tabtune.Trainer.resume({ run: trainer.runId });
      const { digest, tokens } = again.data;
      await again.dispose();
      return { before, after, digest, tokens };
    };
    const truth = await run({ text, name: 'book.txt' }, () => undefined);
    const handle = await root.getFileHandle('book.txt', { create: true });
    const change = () => put(handle, 'something else');
    await put(handle, text);
    const edited = await run(await handle.getFile(), change);
    await put(handle, text);
    const slice = await run((await handle.getFile()).slice(0), change);
    await put(handle, text);
    const deleted = await run(handle, () => root.removeEntry('book.txt'));
    // Before it is given, a file can be gone too.
    const second = await root.getFileHandle('gone.txt', { create: true });
    const empty = await failure(tabtune.newModel(shape, await second.getFile()));
    await put(second, text);
    const file = await second.getFile();
    await root.removeEntry('gone.txt');
    const gone = await failure(tabtune.newModel(shape, file));
    return { truth, changed: { edited, slice, deleted }, empty, gone };
  }, setting());
  for (const [kind, found] of Object.entries(seen.changed))
    assert.deepEqual(found, seen.truth, kind);
  assert.equal(seen.empty.code, 'BAD_OPTION');
  assert.match(seen.empty.message, /nothing in it to learn from\. If it was deleted/);
  assert.match(seen.gone.message, /deleted or moved after it was chosen/);
});
