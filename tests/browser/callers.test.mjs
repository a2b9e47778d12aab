// Unusual arguments of callers: functions that throw, values of another frame, files that change.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { scenario } from './calls.mjs';
import { RUN, scenarios, SHAPE, TEXT } from './scenario.mjs';

const { inPage } = scenarios();
const OPTIONS = { shape: SHAPE, text: TEXT, options: RUN };

test("a caller's function that throws is reported, and the run loses nothing", async () => {
  const seen = await inPage(
    scenario(`
      const reported = new Set();
      addEventListener('error', (event) => { reported.add(event.error.message); event.preventDefault(); });
      const throwing = (name) => ({ onProgress: () => { throw new Error(name); } });
      const model = await tabtune.newModel(argument.shape, { text: argument.text }, throwing('newModel'));
      const trainer = await tabtune.Trainer.create({ model, data: { text: argument.text }, ...argument.options, ...throwing('create') });
      trainer.addEventListener('step', () => { throw new Error('listener'); });
      const first = await trainer.step(2);
      await trainer.save(throwing('save'));
      await trainer.export(throwing('export'));
      const { blob } = await trainer.checkpoints.exportFile(undefined, throwing('exportFile'));
      await trainer.checkpoints.load(undefined, throwing('load'));
      await trainer.checkpoints.importFile(blob, throwing('importFile'));
      const rest = await trainer.step(1);
      const left = [trainer.state, trainer.completedSteps, first.length, rest[0].step];
      await trainer.dispose();
      const resumed = await tabtune.Trainer.resume({ run: trainer.runId, ...throwing('resume') });
      left.push(resumed.completedSteps);
      await resumed.dispose();
      const factory = await failure(tabtune.newModel(argument.shape, { text: argument.text }, { worker: () => { throw new Error('factory'); } }));
      return { left, reported: [...reported].sort(), factory, workers: workers.size };
    `),
    OPTIONS,
  );
  assert.deepEqual(seen.left, ['paused', 3, 2, 3, 2]);
  for (const name of [
    'create',
    'save',
    'export',
    'exportFile',
    'load',
    'importFile',
    'resume',
    'listener',
  ])
    assert.ok(seen.reported.includes(name), name);
  assert.deepEqual(seen.factory.slice(0, 2), ['WORKER_CRASHED', 'worker']);
  assert.equal(seen.workers, 0);
});

test('inputs of another frame are recognised by their kind', async () => {
  const seen = await inPage(
    scenario(`
      const frame = document.body.appendChild(document.createElement('iframe'));
      const other = frame.contentWindow;
      const { text, shape, options } = argument;
      let gguf;
      const trained = async (data) => {
        const model = await tabtune.newModel(shape, { text });
        const trainer = await tabtune.Trainer.create({ model, data, ...options });
        const { digest, tokens } = trainer.data;
        const { dataName } = await trainer.save();
        gguf ??= await trainer.export({ format: 'gguf' });
        await trainer.dispose();
        return [dataName, digest, tokens];
      };
      const truth = (await trained({ text })).slice(1);
      const all = {
        response: await trained(new Response(text)),
        blob: await trained(new other.Blob([text])),
        file: await trained(new other.File([text], 'a.txt')),
        bytes: await trained(new TextEncoder().encode(text)),
        buffer: await trained(new other.Uint8Array(new TextEncoder().encode(text)).buffer),
        fetched: await trained(Object.defineProperty(new Response(text), 'url', { value: location.origin + '/100%.txt' })),
      };
      const opened = await tabtune.openModel(new other.File([gguf], 'm.gguf'));
      const architecture = opened.info.architecture;
      opened.dispose();
      const bad = async (data) => (await failure(tabtune.newModel(shape, data))).toString();
      const read = new Response(text);
      await read.text();
      const refused = {
        undefinedText: await bad({ text: undefined }),
        list: await bad({ text: ['a', 'b'] }),
        functionText: await bad({ text: () => 'a' }),
        name: await bad({ text, name: 5 }),
        read: await bad(read),
        missing: await bad(new Response('not here', { status: 404 })),
        promise: await bad(Promise.resolve(text)),
        tokens: await bad({ tokens: [1, 2] }),
        stream: await bad(new Response(text).body),
        reader: await bad({ name: 'r', size: 4, read: () => 'abcd' }),
        failing: await bad({ name: 'r', size: 4, read: () => { throw new Error('the disk is gone'); } }),
      };
      frame.remove();
      return { truth, all, architecture, refused, workers: workers.size };
    `),
    OPTIONS,
  );
  for (const [kind, [, ...read]] of Object.entries(seen.all))
    assert.deepEqual(read, seen.truth, kind);
  assert.ok(seen.truth[0].length > 0);
  assert.deepEqual([seen.all.file[0], seen.all.fetched[0]], ['a.txt', '100%.txt']);
  assert.equal(seen.architecture, 'llama');
  for (const [kind, said] of Object.entries(seen.refused))
    assert.match(said, /^(BAD_OPTION|BAD_MODEL_FILE),/, `${kind}: ${said}`);
  assert.match(seen.refused.functionText, /data\.text: expected a string, found a function/);
  assert.match(seen.refused.promise, /found a Promise/);
  assert.match(seen.refused.missing, /HTTP 404/);
  assert.match(seen.refused.failing, /the disk is gone/);
  assert.equal(seen.workers, 0);
});

test('data are read as they were when they were passed, even if the caller changes them', async () => {
  const seen = await inPage(
    scenario(`
      const { text, shape, options } = argument;
      const root = await navigator.storage.getDirectory();
      const handle = await root.getFileHandle('book.txt', { create: true });
      const put = async (words) => {
        const out = await handle.createWritable();
        await out.write(words);
        await out.close();
      };
      const run = async (data, spoil) => {
        const model = await tabtune.newModel(shape, { text });
        const trainer = await tabtune.Trainer.create({ model, data, ...options });
        await spoil();
        const found = (await trainer.step(2)).map(({ loss }) => loss);
        await trainer.save();
        await trainer.checkpoints.load();
        found.push(...(await trainer.step(1)).map(({ loss }) => loss));
        await trainer.save();
        await trainer.dispose();
        const again = await tabtune.Trainer.resume({ run: trainer.runId });
        found.push(again.data.digest, again.data.tokens);
        await again.dispose();
        return found;
      };
      const truth = await run({ text, name: 'book.txt' }, async () => undefined);
      await put(text);
      const edited = await run(await handle.getFile(), () => put('something else'));
      await put(text);
      const slice = await run((await handle.getFile()).slice(0), () => put('something else'));
      await put(text);
      const deleted = await run(handle, () => root.removeEntry('book.txt'));
      // Before it is given, a file can be gone too.
      const second = await root.getFileHandle('gone.txt', { create: true });
      const empty = await failure(tabtune.newModel(shape, await second.getFile()));
      const out = await second.createWritable();
      await out.write(text);
      await out.close();
      const file = await second.getFile();
      await root.removeEntry('gone.txt');
      const gone = await failure(tabtune.newModel(shape, file));
      return { truth, edited, slice, deleted, empty, gone };
    `),
    OPTIONS,
  );
  for (const kind of ['edited', 'slice', 'deleted']) assert.deepEqual(seen[kind], seen.truth, kind);
  assert.equal(seen.empty[0], 'BAD_OPTION');
  assert.match(seen.empty[2], /nothing in it to learn from\. If it was deleted/);
  assert.match(seen.gone[2], /deleted or moved after it was chosen/);
});
