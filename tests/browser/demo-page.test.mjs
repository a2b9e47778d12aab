// The demo as a page: how files and texts reach it, what it suggests, and how it looks on narrow screens, on paper and at other pixel ratios.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect } from '@playwright/test';
import { root } from '../../web/toolchain.mjs';
import { drop } from './demo-drop.mjs';
import { demoTests, fill, forget, says, textOf, untilState, untilStep } from './demo-run.mjs';

const { at, test } = demoTests();

test('the files of a dropped folder are read, and the folders in it are named as not read', async ({
  demo,
}) => {
  const { page } = await demo();
  const folder = mkdtempSync(join(tmpdir(), 'tabtune-drop-'));
  try {
    writeFileSync(join(folder, 'second.txt'), 'Of arms and the man. '.repeat(40));
    writeFileSync(join(folder, 'first.txt'), 'Sing, goddess, the anger. '.repeat(40));
    writeFileSync(join(folder, '.hidden'), 'no');
    mkdirSync(join(folder, 'drafts'));
    writeFileSync(join(folder, 'drafts', 'third.txt'), 'x');
    await drop(page, '#drop-data', { files: [folder] });
    await says(page, '#data-facts', 'first.txt, 1.0 kB; second.txt, 840 B');
    assert.equal(await textOf(page, '#data-left'), 'Not read: the folder drafts.');
    await says(page, '#lesson-facts', 'first.txt: text; second.txt: text');
    await drop(page, '#drop-inspect', { files: [folder] });
    await says(page, '#inspect-report', 'second.txt');
    assert.equal(await textOf(page, '#inspect-left'), 'Not read: the folder drafts.');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('text dropped into a field is inserted there, and is not used as data', async ({ demo }) => {
  const { page } = await demo();
  const text = { items: [{ mimeType: 'text/plain', data: 'dropped words' }] };
  await page.fill('#prompt', '');
  await drop(page, '#prompt', text);
  assert.equal(await page.inputValue('#prompt'), 'dropped words');
  await drop(page, '#drop-data', text);
  await page.waitForTimeout(100);
  assert.equal(await page.isChecked('input[name="data"][value="austen"]'), true);
  assert.match(await textOf(page, '#data-facts'), /embedded in this page/);
  assert.equal(page.url(), `${at.site.url}/demo/`);
});

test('each field of files is emptied, so that the same file can be chosen again after it changed', async ({
  demo,
}) => {
  const { page } = await demo();
  const file = (text) => ({ name: 'mine.txt', mimeType: 'text/plain', buffer: Buffer.from(text) });
  await page.setInputFiles('#data-file', file('It is a truth. '.repeat(100)));
  await says(page, '#data-facts', 'mine.txt, 1.5 kB');
  await page.setInputFiles('#data-file', file('It is a truth. '.repeat(200)));
  await says(page, '#data-facts', 'mine.txt, 3.0 kB');
  const ids = ['model-files', 'data-file', 'inspect-files', 'checkpoint-files', 'x-base'];
  for (const id of ids.filter((each) => each !== 'data-file'))
    await page.setInputFiles(`#${id}`, file('none'));
  // A browser reports a choice only if it differs from the value of the field.
  const fields = await page.$$eval('input[type="file"]', (/** @type {HTMLInputElement[]} */ all) =>
    all.map(({ id, files }) => [id, files?.length]),
  );
  assert.deepEqual(
    fields,
    ids.map((id) => [id, 0]),
  );
});

test('the page explains that a browser has no navigator.storage', async ({ demo }) => {
  const { page } = await demo('/demo/', () =>
    Object.defineProperty(Navigator.prototype, 'storage', { get: () => undefined }),
  );
  await says(page, '#storage', 'This browser');
  assert.equal(await page.isHidden('#kept-fault'), true);
  assert.equal(await page.isHidden('#persist'), true);
  assert.doesNotMatch(await textOf(page, 'main'), /undefined|TypeError/);
});

/** Returns the bytes of twenty equal rows, in each form that data have, with the beginning of what is learned of them. */
function forms() {
  const twenty = (row) => Array(20).fill(row);
  const lines = (row) => twenty(JSON.stringify(row)).join('\n');
  const pair = { prompt: 'Name the capital.', completion: 'It is Paris.' };
  const chat = [
    { role: 'user', content: 'Why?' },
    { role: 'assistant', content: 'By scattering.' },
  ];
  const turns = [
    { from: 'human', value: 'Who?' },
    { from: 'gpt', value: 'A poet.' },
  ];
  const golden = (name) => readFileSync(join(root, 'tests/golden', name));
  return {
    fresh: [
      ['pairs.json', JSON.stringify(twenty(pair)), 'It is Paris.'],
      ['pairs.jsonl', lines(pair), 'It is Paris.'],
      [
        'alpaca.json',
        JSON.stringify(
          twenty({ instruction: 'Translate.', input: 'Good day', output: 'Guten Tag' }),
        ),
        'Guten Tag',
      ],
      ['texts.jsonl', lines({ id: 'x1', text: 'Sing, goddess.' }), 'Sing, goddess.'],
      ['pairs.csv', `prompt,completion\n${twenty('Name it,Rome').join('\n')}`, 'Rome'],
      ['pairs.tsv', `prompt\tcompletion\n${twenty('Name it\tOslo').join('\n')}`, 'Oslo'],
      [
        'packed.json.gz',
        gzipSync(JSON.stringify(twenty({ text: 'Arms and the man.' }))),
        'Arms and the man.',
      ],
      ['rows.parquet', golden('rows.parquet'), '1'],
      ['plain.md', 'Call me Ishmael.\n'.repeat(40), 'Call me Ishmael.'],
    ],
    chats: [
      ['chats.json', JSON.stringify(twenty({ messages: chat })), 'By scattering.'],
      ['sharegpt.jsonl', lines({ conversations: turns }), 'A poet.'],
    ],
  };
}

test('the prompt of samples is the beginning of what is learned, in every form of data', async ({
  demo,
}) => {
  const { page } = await demo('/demo/', forget);
  const suggests = async (/** @type {any[]} */ [name, content, prompt]) => {
    await page.setInputFiles('#data-file', { name, mimeType: '', buffer: Buffer.from(content) });
    await expect(page.locator('#prompt'), name).toHaveValue(prompt);
  };
  // The others with TABTUNE_FULL=1: each takes a third of a second to read and to show.
  const { fresh, chats } = forms();
  const first = process.env.TABTUNE_FULL === undefined ? 3 : fresh.length;
  for (const form of fresh.slice(0, first)) await suggests(form);
  const folder = join(root, 'tests/golden/inputs/boundary');
  await page.setInputFiles(
    '#model-files',
    readdirSync(folder).map((name) => join(folder, name)),
  );
  for (const form of chats) await suggests(form);
  // One that was typed stays.
  await page.fill('#prompt', 'mine');
  await page.check('input[name="data"][value="austen"]');
  await says(page, '#lesson-facts', 'pride-and-prejudice');
  assert.equal(await page.inputValue('#prompt'), 'mine');
});

/** Runs in the page: returns the contrast of texts to white paper, and whether each chart has the light theme's grid. */
function inks() {
  const light = (value) => (value <= 10 ? value / 3295 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const toWhite = (/** @type {number[]} */ [r, g, b]) =>
    1.05 / (0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b) + 0.05);
  const channelsOf = (id) =>
    (getComputedStyle(document.querySelector(id)).color.match(/[\d.]+/g) ?? []).map(Number);
  const isDrawn = (canvas) => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return data.some(
      (red, at) =>
        at % 4 === 0 &&
        red === 221 &&
        data[at + 1] === 214 &&
        data[at + 2] === 203 &&
        data[at + 3] === 255,
    );
  };
  return {
    contrasts: ['#run-title', '#run-story', '#f-loss', '#status'].map((id) =>
      toWhite(channelsOf(id)),
    ),
    charts: [...document.querySelectorAll('.plot canvas')].map(isDrawn),
  };
}

test('during a run the page fits narrow windows, prints in dark ink, and draws sharp charts', async ({
  demo,
}) => {
  const { page } = await demo();
  await fill(page, { steps: 3_000_000, batch: 1, length: 8, sample: 0 });
  await page.click('#start');
  await untilStep(page, 12);
  await page.evaluate(() =>
    document.querySelectorAll('main details').forEach((each) => each.setAttribute('open', '')),
  );
  for (const width of [320, 360, 390, 700]) {
    await page.setViewportSize({ width, height: 780 });
    // The charts follow in the next frame.
    await page.evaluate(
      () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
    );
    const [content, window] = await page.evaluate(() => [
      document.documentElement.scrollWidth,
      document.documentElement.clientWidth,
    ]);
    assert.ok(content <= window, `${content} px in a window of ${window}`);
  }

  await page.emulateMedia({ colorScheme: 'dark' });
  const themeIs = (/** @type {string} */ theme) =>
    expect(page.locator('html')).toHaveAttribute('data-theme', theme);
  await themeIs('dark');
  await page.emulateMedia({ colorScheme: 'dark', media: 'print' });
  await themeIs('light');
  const { contrasts, charts } = await page.evaluate(inks);
  assert.ok(Math.min(...contrasts) > 4.5, `${contrasts}`);
  assert.deepEqual(charts, [true, true]);
  await page.emulateMedia({ colorScheme: 'dark', media: 'screen' });
  await themeIs('dark');
  assert.deepEqual((await page.evaluate(inks)).charts, [false, false]);
  const devtools = await page.context().newCDPSession(page);
  // Paper gets what is drawn by then, with no further frame.
  await page.evaluate(
    `addEventListener('beforeprint', () => queueMicrotask(() => (document.title = (${inks})().charts.join())))`,
  );
  await page.click('#pause');
  await untilState(page, 'paused');
  await devtools.send('Page.printToPDF');
  assert.equal(await page.title(), 'true,true');

  for (const ratio of [1, 2, 1.5]) {
    await devtools.send('Emulation.setDeviceMetricsOverride', {
      width: 600,
      height: 780,
      deviceScaleFactor: ratio,
      mobile: false,
    });
    // Only a picture makes the browser apply the ratio.
    await devtools.send('Page.captureScreenshot');
    const sharp = (wanted) =>
      Array.from(document.querySelectorAll('canvas')).every(
        (canvas) =>
          canvas.width > 100 * wanted &&
          Math.abs(canvas.width - canvas.getBoundingClientRect().width * wanted) < 0.1,
      );
    await page.waitForFunction(sharp, ratio, { timeout: 10_000 });
  }
});
