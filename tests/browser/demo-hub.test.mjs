// The demo opens models by name from a double of the Hugging Face Hub, which answers in place of the hub's real hosts, under the page's real policy.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { HUB_HOSTS } from '../../web/demo/hub-hosts.mjs';
import { root } from '../../web/toolchain.mjs';
import { demoTests, fill, says, textOf, untilState } from './demo-run.mjs';
import { commitOf, hubDouble } from './hub-double.mjs';

const TOKEN = 'hf_secret';
/** Rows of the table of embeddings: the weights have more bytes than are loaded before they are needed. */
const ROWS = 65_536;
const { at, test } = demoTests();

/** Returns a folder with a tokenizer and a template, whose table is longer than the vocabulary of the tokenizer. */
function folder() {
  const from = join(root, 'tests/golden/inputs/boundary');
  const files = Object.fromEntries(
    readdirSync(from).map((name) => [name, readFileSync(join(from, name))]),
  );
  const config = JSON.parse(files['config.json'].toString());
  const weights = files['model.safetensors'];
  const start = 8 + Number(weights.readBigUInt64LE());
  const tensors = JSON.parse(weights.subarray(8, start).toString());
  const table = tensors['model.embed_tokens.weight'];
  const more = (ROWS - table.shape[0]) * config.hidden_size * 4;
  const end = table.data_offsets[1];
  table.shape[0] = config.vocab_size = ROWS;
  for (const { data_offsets: offsets } of Object.values(tensors).filter(
    (each) => each.data_offsets,
  ))
    for (const index of [0, 1]) if (offsets[index] >= end) offsets[index] += more;
  table.data_offsets = [0, end + more];
  const header = Buffer.from(JSON.stringify(tensors));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  const data = weights.subarray(start);
  const all = [length, header, data.subarray(0, end), Buffer.alloc(more), data.subarray(end)];
  return {
    ...files,
    'config.json': Buffer.from(JSON.stringify(config)),
    'model.safetensors': Buffer.concat(all),
  };
}

const FILES = folder();
const REPOSITORIES = {
  'owner/tiny': { revisions: { main: FILES } },
  'owner/gated': { revisions: { main: FILES }, token: TOKEN },
};

/**
 * Answers requests to the hub by a double of it, until `close`. `gate` is awaited before the answer to each.
 * @param {import('@playwright/test').Page} page
 */
async function hubOf(page) {
  const hub = await hubDouble(REPOSITORIES);
  const hosts = /^https:\/\/([\w.-]+\.)?(huggingface|hf)\.co\//;
  const state = { gate: async (/** @type {string} */ _path) => undefined };
  await page.context().route(hosts, async (route) => {
    const { pathname, search } = new URL(route.request().url());
    await state.gate(pathname);
    const { authorization, range } = await route.request().allHeaders();
    const given = Object.entries({ authorization, range, origin: at.site.url });
    const reply = await fetch(`${hub.url}${pathname}${search}`, {
      headers: given.filter(([, value]) => value !== undefined),
    });
    const headers = Object.fromEntries(reply.headers);
    const body = Buffer.from(await reply.arrayBuffer());
    // A page that stops a download no longer waits for it.
    await route.fulfill({ status: reply.status, headers, body }).catch(() => undefined);
  });
  const close = async () => {
    await page.context().unroute(hosts);
    hub.close();
  };
  return { asked: hub.asked, flaws: hub.flaws, state, close };
}

/** Opens a model by name. @param {import('@playwright/test').Page} page @param {string} name */
async function name(page, name) {
  await page.fill('#hub-name', name);
  await page.click('#hub-open');
}

/** Trains two small steps of an adapter. @param {import('@playwright/test').Page} page */
async function train(page) {
  await page.check('input[name="trained"][value="adapter"]');
  await fill(page, { steps: 2, batch: 1, length: 8, sample: 0, rank: 2 });
  await page.click('#start');
  await untilState(page, 'done');
  assert.equal(Number(await page.getAttribute('#main', 'data-step')), 2);
}

/** Removes the errors that a browser logs for a refusal, and for an answer that the page no longer waits for. */
const forgive = (/** @type {{ errors: string[] }} */ record) =>
  (record.errors = record.errors.filter(
    (error) => !/status of 4(01|03|04|29)|https:\/\/huggingface\.co.*ERR_ABORTED/.test(error),
  ));

test('a model by name shows its files, trains, is kept, and can be removed', async ({ demo }) => {
  const { page, record } = await demo();
  const hub = await hubOf(page);
  try {
    assert.equal(await page.isHidden('#downloads'), true);
    await page.fill('#hub-name', 'https://huggingface.co/owner/tiny/tree/main');
    await page.check('input[name="model"][value="hub"]');
    await says(page, '#hub-said', 'press Open');
    assert.deepEqual(hub.asked, [], 'a name that is typed is not asked for');

    /** @type {() => void} */
    let release = () => undefined;
    const held = new Promise((done) => (release = () => done(undefined)));
    hub.state.gate = async (path) => (path.endsWith('.safetensors') ? held : undefined);
    await page.press('#hub-name', 'Enter');
    await says(page, '#hub-files', /^5 files, 4.2 MB: .*model\.safetensors.4.2 MB/);
    await page.click('#hub-stop');
    await says(page, '#hub-said', 'Stopped.');
    assert.equal(await page.isHidden('#hub-fault'), true);
    assert.equal(await page.isHidden('#setup-fault'), true);
    release();
    await page.click('#hub-open');
    await says(page, '#hub-said', /^Commit [0-9a-f]{12}\. Up to 3\.2 MB of it are downloaded/);
    assert.ok((await textOf(page, '#hub-said')).includes(commitOf(FILES).slice(0, 12)));
    assert.equal(await textOf(page, '#run-title'), 'tiny reads Austen');
    await says(page, '#t-adapter', 'about');

    await page.evaluate(() => {
      const said = (window.said = []);
      const status = document.querySelector('#status');
      new MutationObserver(() => said.push(status.textContent)).observe(status, {
        childList: true,
      });
    });
    await train(page);
    const said = await page.evaluate(() => window.said);
    assert.ok(said.includes('Downloading model.safetensors …'), said.join('\n'));
    await says(page, '#downloads-list', '4.2 MB in 5 files');

    // Another visit continues with what is kept, without a question or a request.
    hub.asked.length = 0;
    await page.reload();
    await says(page, '#downloads-list', 'hf:owner/tiny');
    await page.click('#goon');
    await untilState(page, 'done');
    await says(page, '#run-base', 'model.safetensors');
    assert.deepEqual(hub.asked, []);
    await page.getByRole('button', { name: 'Remove the download hf:owner/tiny' }).click();
    await expect(page.locator('#downloads')).toBeHidden();
    assert.deepEqual(
      [...record.origins].filter((origin) => origin !== at.site.url),
      ['https://huggingface.co'],
    );
    forgive(record);
  } finally {
    await hub.close();
  }
});

test('the refusals of the hub are shown, and a gated model is read with a token that is not stored', async ({
  demo,
}) => {
  const { page, record } = await demo();
  const hub = await hubOf(page);
  try {
    await name(page, 'owner/none');
    await says(page, '#hub-fault', 'there is no such repository, or it is private');
    assert.equal(
      await page.getAttribute('#hub-fault a', 'href'),
      'https://huggingface.co/owner/none',
    );
    assert.equal(await textOf(page, '#run-title'), 'none reads Austen');
    // Only a person asks again.
    const before = hub.asked.length;
    await fill(page, { steps: 2, batch: 1, length: 8, sample: 0 });
    await page.waitForTimeout(500);
    assert.equal(hub.asked.length, before);
    await page.click('#start');
    await says(page, '#status', 'did not start');
    await says(page, '#hub-fault', 'there is no such repository');
    assert.ok(hub.asked.length > before);

    await name(page, 'elsewhere.example/a/b');
    await says(page, '#hub-fault', 'there is no such');
    await name(page, 'https://elsewhere.example/a/b');
    await says(page, '#hub-fault', 'may contact the Hugging Face Hub only');
    hub.flaws.busy = hub.flaws.shown = true;
    await name(page, 'owner/tiny@v1');
    await says(page, '#hub-fault', 'HTTP 429, and its server asks to wait for 3600 seconds');
    hub.flaws.busy = false;
    await name(page, 'owner/tiny@v1');
    await says(page, '#hub-fault', 'there is no such revision');

    await name(page, 'owner/gated');
    await says(page, '#hub-fault', 'its terms have to be accepted');
    await page.fill('#hub-token', TOKEN);
    await page.press('#hub-token', 'Enter');
    await says(page, '#hub-said', 'Up to');
    await expect(page.locator('#hub-fault')).toBeHidden();
    await train(page);
    const tokens = hub.asked
      .filter(({ path }) => path.includes('gated'))
      .map(({ token }) => token ?? '');
    assert.equal(tokens.at(-1), `Bearer ${TOKEN}`);
    const stored = await page.evaluate(() =>
      JSON.stringify({ ...localStorage, ...sessionStorage }),
    );
    assert.match(stored, /owner\/gated/);
    assert.ok(!stored.includes(TOKEN), stored);
    assert.equal(await page.evaluate(() => document.cookie), '');
    forgive(record);
  } finally {
    await hub.close();
  }
});

test('page and worker may contact the hub and where it redirects, and nothing else', async ({
  demo,
}) => {
  const { page, record } = await demo();
  const elsewhere = [
    'https://elsewhere.example/',
    'https://example.huggingface.co/',
    'https://example.hf.space/',
    'https://hf.co/',
    'http://huggingface.co/',
  ];
  const hub = HUB_HOSTS.map((host) => `${host.replace('*', 'cas-bridge.xethub')}/`);
  /** @type {string[]} */
  const reached = [];
  const anywhere = /^https?:\/\/(?!127)/;
  await page.context().route(anywhere, (route) => {
    reached.push(route.request().url());
    return route.fulfill({ headers: { 'access-control-allow-origin': '*' }, body: 'here' });
  });
  const asked = async (/** @type {string} */ url) =>
    fetch(url).then(
      ({ status }) => status,
      ({ name }) => name,
    );
  try {
    const [worker] = page.workers();
    for (const answer of [
      (url) => page.evaluate(asked, url),
      (url) => worker.evaluate(asked, url),
    ]) {
      for (const url of hub) assert.equal(await answer(url), 200, url);
      for (const url of elsewhere) assert.equal(await answer(url), 'TypeError', url);
    }
    assert.deepEqual(reached, [...hub, ...hub]);
    await page.click('#about-open');
    await says(page, '#policy', 'talk to this address and to the Hugging Face Hub only');
    record.errors = record.errors.filter((error) => !/Content.Security.Policy|csp/i.test(error));
  } finally {
    await page.context().unroute(anywhere);
  }
});
