// Models and data by name, from a double of the Hugging Face Hub: which files are taken, what is asked and sent, what is kept, and what is refused.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { Browser } from './chromium.mjs';
import { ANSWERS, commitOf, hubDouble } from './hub-double.mjs';
import { FOLDER, FORMS, golden, sharded } from './hub-models.mjs';
import { serve } from './site.mjs';

const TOKEN = 'hf_secret';
const ROWS = Array.from({ length: 40 }, (_, at) => `{"text":"Row ${at} of the data."}\n`).join('');
/** @type {Browser} */
let browser;
/** @type {import('./site.mjs').Site} */
let site;

/** Runs `work(tabtune, outcome, argument)` in a new page. @template A, R @param {(tabtune: any, outcome: any, argument: A) => R} work @param {A} argument @returns {Promise<any>} */
async function inPage(work, argument) {
  const { page } = await browser.open(`${site.url}/`);
  try {
    return await page.evaluate(
      `(async (argument) => {
        const tabtune = await import('/dist/index.js');
        const outcome = async (promise) => {
          try {
            return await promise;
          } catch (thrown) {
            const { code, detail, message } = thrown;
            return { refused: detail?.code ?? code ?? 'raw', code, message };
          }
        };
        return (${work})(tabtune, outcome, argument);
      })(${JSON.stringify(argument)})`,
    );
  } finally {
    await page.close();
  }
}

/** Opens a model by name, and returns what a caller sees of it. @param {string | string[]} name @param {object} options */
const opened = (name, options) =>
  inPage(
    async (tabtune, outcome, { name, options }) => {
      const progress = [];
      const onProgress = (each) => progress.push([each.phase, each.file, each.loaded, each.total]);
      const model = await outcome(tabtune.openModel(name, { ...options, onProgress }));
      if (model.refused) return model;
      const tensor = await outcome(model.tensor(model.info.tensors[0].name));
      const seen = {
        tensor: tensor.refused ?? tensor.values.length,
        hub: model.base?.hub,
        files: model.base?.files.map((file) => file.name),
        warnings: model.warnings.map(({ code }) => code),
        progress,
      };
      await model.dispose();
      return seen;
    },
    { name, options },
  );

test.beforeAll(async () => {
  [browser, site] = await Promise.all([Browser.launch(), serve({}, { policy: null })]);
});
test.afterAll(async () => {
  await browser.close();
  await site.close();
});
test.beforeEach(() => inPage((tabtune) => tabtune.removeDownloads(), null));

const others = { 'README.md': Buffer.from('# Tiny'), 'pytorch_model.bin': Buffer.from('pickle') };

test('a repository opens by name, its branch is asked for once, and its commit never again', async () => {
  const files = { ...FOLDER, ...others };
  const hub = await hubDouble({ 'owner/tiny': { revisions: { main: files } } });
  try {
    const options = { hub: hub.url };
    const first = await opened('hf:owner/tiny', options);
    assert.deepEqual(first.files, ['model.safetensors'], JSON.stringify(first));
    assert.equal(first.hub.commit, commitOf(files));
    // All files are named with their bytes before the first is loaded.
    const named = first.progress.filter(
      ([phase, , loaded]) => phase === 'download' && loaded === 0,
    );
    assert.deepEqual(
      new Map(named.map(([, file, , total]) => [file, total])),
      new Map(Object.entries(FOLDER).map(([file, bytes]) => [file, bytes.length])),
    );
    assert.ok(first.tensor > 0);
    const paths = hub.asked.map(({ path }) => path);
    assert.equal(paths[0], '/api/models/owner/tiny/revision/main?blobs=true');
    assert.ok(!paths.some((path) => /README|pytorch_model/.test(path)), paths.join(' '));
    assert.deepEqual(new Set(hub.asked.map(({ referer }) => referer)), new Set([undefined]));
    for (const form of FORMS) {
      hub.asked.length = 0;
      const again = await opened(form, options);
      assert.equal(again.tensor, first.tensor, `${form}: ${JSON.stringify(again)}`);
      assert.deepEqual(
        hub.asked.map(({ path }) => path),
        [paths[0]],
        form,
      );
    }
    hub.asked.length = 0;
    const pinned = await opened(`hf:owner/tiny@${commitOf(files)}`, options);
    assert.deepEqual([pinned.tensor, hub.asked], [first.tensor, []]);
    const kept = await inPage((tabtune) => tabtune.listDownloads(), null);
    assert.deepEqual(
      kept.map(({ name, complete }) => [name, complete]),
      Object.keys(FOLDER)
        .map((file) => [`hf:owner/tiny@${commitOf(files)}/${file}`, true])
        .sort(),
    );
    hub.close();
    const offline = await opened('hf:owner/tiny', options);
    assert.deepEqual([offline.tensor, offline.warnings], [first.tensor, ['hub.offline']]);
    assert.equal((await opened('hf:owner/tiny@v2', options)).refused, 'source.download');
    const removed = await inPage((tabtune) => tabtune.removeDownloads('hf:owner/tiny'), null);
    assert.equal(removed.length, kept.length);
    assert.deepEqual(await inPage((tabtune) => tabtune.listDownloads(), null), []);
  } finally {
    hub.close();
  }
});

test('shards, GGUF files by their type, and single files are chosen', async () => {
  const gguf = golden('llama3.gguf');
  const hub = await hubDouble({
    'owner/shards': { revisions: { main: { ...sharded(), ...others } } },
    'owner/gguf': {
      revisions: { main: { 'm-Q8_0.gguf': gguf, 'm-Q4_K_M.gguf': gguf, 'm-Q2_K.gguf': gguf } },
    },
    'owner/odd': { revisions: { main: { 'm-Q2_K.gguf': gguf, 'm-Q3_K_S.gguf': gguf } } },
    'owner/pickle': { revisions: { main: others } },
  });
  try {
    const options = { hub: hub.url };
    const shards = await opened('hf:owner/shards', options);
    assert.ok(shards.files.length > 1 && shards.tensor > 0, JSON.stringify(shards));
    for (const [name, more, file] of /** @type {[string, object, string][]} */ ([
      ['hf:owner/gguf', {}, 'm-Q4_K_M.gguf'],
      ['hf:owner/gguf', { quant: 'q8_0' }, 'm-Q8_0.gguf'],
      ['hf:owner/gguf/m-Q2_K.gguf', {}, 'm-Q2_K.gguf'],
      [
        'https://huggingface.co/owner/gguf/blob/main/m-Q2_K.gguf?show_file_info=m',
        {},
        'm-Q2_K.gguf',
      ],
      [`${hub.url}/owner/odd/resolve/main/m-Q3_K_S.gguf?download=true`, {}, 'm-Q3_K_S.gguf'],
    ])) {
      const seen = await opened(name, { ...options, ...more });
      assert.deepEqual(seen.files, [file], `${name}: ${JSON.stringify(seen)}`);
    }
    for (const [name, more, said] of /** @type {[string, object, RegExp][]} */ ([
      ['hf:owner/odd', {}, /m-Q2_K\.gguf \(\d+ bytes\), m-Q3_K_S\.gguf/],
      ['hf:owner/gguf', { quant: 'F16' }, /m-Q8_0\.gguf/],
      ['hf:owner/pickle', {}, /pytorch_model\.bin/],
    ])) {
      const seen = await opened(name, { ...options, ...more });
      assert.equal(seen.refused, 'hub.files', JSON.stringify(seen));
      assert.match(seen.message, said);
    }
  } finally {
    hub.close();
  }
});

test('a token is sent to the hub alone, and each refusal has words of its own', async () => {
  const gated = { revisions: { main: FOLDER }, token: TOKEN, outsider: 'hf_other' };
  const hub = await hubDouble({ 'owner/gated': gated });
  try {
    const options = { hub: hub.url };
    /** @type {[string, object, string][]} */
    const refusals = [
      ['hf:owner/gated', {}, 'hub.gated'],
      ['hf:owner/gated', { token: 'hf_other' }, 'hub.gated'],
      ['hf:owner/none', {}, 'hub.unknown'],
      ['hf:owner/gated@v9', { token: TOKEN }, 'hub.missing'],
    ];
    for (const [name, more, code] of refusals) {
      const seen = await opened(name, { ...options, ...more });
      assert.equal(seen.refused, code, JSON.stringify(seen));
      assert.ok(seen.message.includes(`${hub.url}/owner/`), seen.message);
    }
    hub.asked.length = 0;
    const seen = await inPage(
      async (tabtune, outcome, { options, token }) => {
        const asked = async () => token;
        const model = await outcome(
          tabtune.openModel('hf:owner/gated', { ...options, token: asked }),
        );
        return model.refused ? model : outcome(model.tensor(model.info.tensors[0].name));
      },
      { options, token: TOKEN },
    );
    assert.equal(seen.refused, undefined, JSON.stringify(seen));
    const tokens = (origin) =>
      new Set(hub.asked.filter((each) => each.origin === origin).map(({ token }) => token));
    assert.deepEqual(tokens('hub'), new Set([`Bearer ${TOKEN}`]));
    assert.deepEqual(tokens('storage'), new Set([undefined]));
    hub.flaws.busy = true;
    const busy = await opened('hf:owner/gated@v1', options);
    // The hub does not let pages read how long to wait; a mirror may.
    assert.match(busy.message, /HTTP 429: it was asked too often/);
    hub.flaws.shown = true;
    const shown = await opened('hf:owner/gated@v1', options);
    assert.match(shown.message, /HTTP 429, and its server asks to wait for 3600 seconds/);
    Object.assign(hub.flaws, { busy: false, page: true });
    assert.match(
      (await opened('hf:owner/gated@v2', options)).message,
      /something else than a list/,
    );
  } finally {
    hub.close();
  }
});

test('a wrong byte is INTEGRITY before any tensor is used', async () => {
  for (const wrong of ['model.safetensors', 'config.json']) {
    await inPage((tabtune) => tabtune.removeDownloads(), null);
    const hub = await hubDouble({ 'owner/tiny': { revisions: { main: FOLDER } } });
    try {
      hub.flaws.wrong = wrong;
      const options = { hub: hub.url };
      const seen = await opened('hf:owner/tiny', options);
      assert.equal(seen.refused, 'source.integrity', JSON.stringify(seen));
      const trained = await inPage(async (tabtune, outcome, options) => {
        const model = await outcome(tabtune.openModel('hf:owner/tiny', options));
        if (model.refused) return model;
        const text = { text: 'to be or not to be '.repeat(40) };
        const run = { model, data: text, steps: 1, batchSize: 1, seqLen: 8 };
        return outcome(tabtune.Trainer.create(run));
      }, options);
      assert.deepEqual([trained.code, trained.refused], ['INTEGRITY', 'source.integrity']);
      hub.flaws.wrong = undefined;
      assert.ok((await opened('hf:owner/tiny', options)).tensor > 0);
    } finally {
      hub.close();
    }
  }
});

test('data come by name, as files of one form, the training part of them', async () => {
  const train = Buffer.from(ROWS);
  const hub = await hubDouble({
    'datasets/owner/rows': {
      revisions: {
        main: { 'README.md': train, 'data/train.jsonl': train, 'data/test.jsonl': train },
      },
    },
    'datasets/owner/pictures': { revisions: { main: { 'a.png': train, 'b.png': train } } },
  });
  try {
    const seen = await inPage(async (tabtune, outcome, hub) => {
      const inspected = async (url) => {
        const found = await outcome(tabtune.inspectData({ url, hub }));
        return found.refused
          ? found
          : found.map(({ name, rows, warnings }) => [name, rows, warnings.map(({ code }) => code)]);
      };
      return {
        all: await inspected('hf:datasets/owner/rows'),
        one: await inspected('hf:datasets/owner/rows/data/test.jsonl'),
        pasted: await inspected(
          'https://huggingface.co/datasets/owner/rows/blob/main/data/test.jsonl',
        ),
        pictures: await inspected('hf:datasets/owner/pictures'),
        text: await outcome(tabtune.inspectData('to be or not to be')),
        relative: await outcome(tabtune.inspectData('/data.txt')),
      };
    }, hub.url);
    assert.deepEqual(seen.all, [['data/train.jsonl', 40, ['hub.left']]], JSON.stringify(seen.all));
    assert.deepEqual(seen.one, [['data/test.jsonl', 40, []]], JSON.stringify(seen.one));
    assert.deepEqual(seen.pasted, seen.one);
    assert.match(seen.pictures.message, /a\.png \(\d+ bytes\), b\.png/);
    assert.deepEqual([seen.text.code, seen.relative.code], ['BAD_OPTION', 'BAD_MODEL_FILE']);
  } finally {
    hub.close();
  }
});

test('the double answers in the shape that was recorded', async () => {
  const hub = await hubDouble({ 'owner/tiny': { revisions: { main: FOLDER } } });
  try {
    const url = `${hub.url}/api/models/owner/tiny/revision/main?blobs=true`;
    const listing = await (await fetch(url)).json();
    assert.deepEqual(Object.keys(listing).sort(), Object.keys(ANSWERS.listing).sort());
    const shapes = (/** @type {any} */ { siblings }) =>
      new Set(siblings.map((file) => [Object.keys(file), Object.keys(file.lfs ?? {})].join(' ')));
    assert.deepEqual(shapes(listing), shapes(ANSWERS.listing));
  } finally {
    hub.close();
  }
});
