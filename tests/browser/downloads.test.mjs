// Models by address: their headers come first and the rest when weights are used; what came is kept, continued and not asked for again.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { Browser } from './chromium.mjs';
import { serve } from './site.mjs';
import { sparseModel } from './sparse-model.mjs';

const MIB = 1 << 20;
/** A worker whose browser says that there is little room. */
const SMALL = '/small.js';
function hasLittleRoom() {
  navigator.storage.estimate = async () => ({ quota: 20 * 2 ** 20, usage: 0 });
}
/** The tensor that is read, whose bytes come last. */
const LAST = 'model.layers.0.mlp.down_proj.weight';

/** @type {Browser} */
let browser;
/** @type {import('./site.mjs').Site} */
let site;
/** @type {Awaited<ReturnType<typeof sparseModel>>} */
let model;

test.beforeAll(async () => {
  [browser, site, model] = await Promise.all([
    Browser.launch(),
    serve({}, { policy: null, scripts: { [SMALL]: { work: hasLittleRoom } } }),
    sparseModel(1),
  ]);
});
test.afterAll(async () => {
  await browser.close();
  await site.close();
  model.close();
});
test.beforeEach(async () => {
  model.set();
  await opened([], { forget: true });
});

/**
 * Opens a model in a new page and reads a tensor of it, unless there is none to read; returns the end of each, the kept downloads, and the bytes that the
 * page itself loaded.
 * @param {any[]} files @param {{ tensor?: string, forget?: boolean, trained?: boolean, [option: string]: unknown }} options
 * @returns {Promise<{ open: any, read: any, asked: number, kept: import('tabtune').DownloadInfo[] }>}
 */
async function opened(files, { tensor, forget, trained, ...options } = {}) {
  const { page } = await browser.open(`${site.url}/`);
  try {
    return await page.evaluate(
      async ({ files, tensor, forget, trained, options }) => {
        const tabtune = await import('/dist/index.js');
        if (forget) await tabtune.removeDownloads();
        const refused = (/** @type {any} */ { code, detail, message }) => ({
          refused: detail?.code ?? code ?? 'raw',
          code,
          need: detail?.need,
          message,
        });
        const { fetch } = globalThis;
        let asked = 0;
        globalThis.fetch = (address, init) => {
          asked += 1;
          return fetch(address, init);
        };
        /** @type {any} */
        let read;
        /** @type {any} */
        let open;
        if (files.length > 0) {
          open = await tabtune.openModel(files, options).catch(refused);
          if (!('refused' in open)) {
            if (tensor)
              read = await open
                .tensor(tensor)
                .then((/** @type {{ shape: number[] }} */ { shape }) => shape, refused);
            if (trained)
              read = await tabtune.Trainer.create({
                model: open,
                data: { tokens: new Uint32Array(100) },
                steps: 1,
              }).then(() => 'trained', refused);
            await open.dispose();
            open = {
              warnings: open.warnings.map((/** @type {{ code: string }} */ { code }) => code),
            };
          }
        }
        return { open, read, asked, kept: await tabtune.listDownloads() };
      },
      { files, tensor, forget, trained, options },
    );
  } finally {
    await page.close();
  }
}

const pinned = () => [model.files[0], { url: model.files[1], sha256: model.sha256 }];

test('a file of 1 GB opens by its header, and no byte of it reaches the page', async () => {
  const large = await sparseModel(16);
  try {
    assert.ok(large.size > 1e9);
    const { open, asked } = await opened(large.files);
    assert.deepEqual([open.warnings, asked], [[], 0], JSON.stringify(open));
    assert.ok(large.bytes < 64 * MIB, `${large.bytes} bytes`);
  } finally {
    large.close();
  }
});

test('a download that breaks off continues in another page, and is asked for once', async () => {
  for (const files of [pinned(), model.files]) {
    await opened([], { forget: true });
    let sent = 0;
    for (const cut of [10, 3 * MIB, 20 * MIB]) {
      model.set({ cut });
      // The server stops after the cut, and then sends nothing.
      const going = opened(files, { tensor: LAST });
      for (let until = Date.now() + 20_000; model.bytes < cut && Date.now() < until;)
        await new Promise((done) => setTimeout(done, 20));
      sent += model.bytes;
      model.set({ status: 500 });
      const { open, read } = await going;
      const { refused } = read ?? open;
      assert.ok(['source.truncated', 'source.download'].includes(refused), refused);
    }
    const { kept } = await opened([]);
    const part = kept.find(({ name }) => name.endsWith('.safetensors'));
    assert.ok(part && !part.complete && part.bytes > 10 * MIB, JSON.stringify(kept));
    model.set();
    const { read } = await opened(files, { tensor: LAST });
    assert.deepEqual(read, [1024, 4096]);
    sent += model.bytes;
    assert.ok(sent < model.size + 2 * MIB, `${sent} of ${model.size} bytes`);
    model.set();
    const again = await opened(files, { tensor: LAST });
    assert.deepEqual(again.read, [1024, 4096]);
    // Without a sum, the server is asked whether it is still the same file.
    const most = files === model.files ? MIB : 0;
    assert.ok(model.bytes <= most, `${model.bytes} bytes: ${model.ranges.join(' ')}`);
    assert.equal(
      again.kept.find(({ name }) => name.endsWith('.safetensors'))?.sha256,
      model.sha256,
    );
  }
});

test('a wrong byte is INTEGRITY, and nothing of the file is used or kept', async () => {
  for (const how of [{ tensor: LAST }, { trained: true }]) {
    model.set({ flip: true });
    const { read, kept } = await opened(pinned(), how);
    assert.deepEqual([read.code, read.refused], ['INTEGRITY', 'source.integrity']);
    assert.deepEqual(
      kept.filter(({ name }) => name.endsWith('.safetensors')),
      [],
    );
  }
  model.set();
  assert.deepEqual((await opened(pinned(), { tensor: LAST })).read, [1024, 4096]);
});

test('servers of other kinds are understood, or refused in words of their own', async () => {
  /** @type {[Record<string, unknown>, string | number[], RegExp?][]} */
  const behaviours = [
    [{ ranges: false }, [1024, 4096]],
    [{ hops: 1 }, [1024, 4096]],
    [{ status: 401 }, 'source.download', /HTTP 401: it asks who is reading/],
    [{ status: 404 }, 'source.download', /HTTP 404: it has no such file/],
    [{ shift: 1 }, 'source.range', /bytes from 0 on/],
  ];
  for (const [flaws, expected, said = /./] of behaviours) {
    await opened([], { forget: true });
    model.set(flaws);
    const { open, read } = await opened(pinned(), { tensor: LAST });
    const end = read ?? open;
    assert.deepEqual(end.refused ?? end, expected, JSON.stringify([flaws, open, read]));
    assert.match(String(end.message ?? '.'), said);
  }
  // Another file at the same address, between two pages and in the middle.
  model.set({ cut: 3 * MIB });
  const going = opened(model.files, { tensor: LAST });
  for (let until = Date.now() + 20_000; model.bytes < 3 * MIB && Date.now() < until;)
    await new Promise((done) => setTimeout(done, 20));
  model.set({ etag: '"two"' });
  const { read } = await going;
  assert.equal(read?.refused, 'source.changed', JSON.stringify(read));
  assert.deepEqual((await opened(model.files, { tensor: LAST })).read, [1024, 4096]);
});

test('what does not fit is QUOTA_EXCEEDED before its bytes, and opens without being kept', async () => {
  const { open } = await opened(pinned(), { workerUrl: SMALL });
  assert.deepEqual([open.code, open.refused], ['QUOTA_EXCEEDED', 'download.room']);
  assert.ok(open.need > 60 * MIB && /keepDownloads: false/.test(open.message), open.message);
  assert.ok(model.bytes <= 2 * MIB, `${model.bytes} bytes`);
  const { page } = await browser.open(`${site.url}/`);
  const session = await page.context().newCDPSession(page);
  // The browser's estimate does not show this limit.
  const quota = { origin: `${site.url}/`, quotaSize: 20 * MIB };
  await session.send('Storage.overrideQuotaForOrigin', quota);
  try {
    const { read: full } = await opened(pinned(), { tensor: LAST });
    assert.deepEqual([full.code, full.refused], ['QUOTA_EXCEEDED', 'download.room']);
    await opened([], { forget: true });
    const { read, kept } = await opened(pinned(), { tensor: LAST, keepDownloads: false });
    assert.deepEqual([read, kept], [[1024, 4096], []]);
  } finally {
    await session.send('Storage.overrideQuotaForOrigin', { origin: `${site.url}/` });
    await page.close();
  }
});
