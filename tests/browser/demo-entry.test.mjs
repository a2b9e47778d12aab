// How texts and models reach the demo: pasted, dropped anywhere, in old encodings; and where the page says that something cannot be used.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { drop } from './demo-drop.mjs';
import { demoTests, fill, forget, says, untilState } from './demo-run.mjs';
import { FOLDER } from './hub-models.mjs';

const { test } = demoTests();
const SAID = {
  Russian: 'Все счастливые семьи похожи друг на друга. ',
  Greek: 'Ἄνδρα μοι ἔννεπε, Μοῦσα, πολύτροπον. ',
  Japanese: '吾輩は猫である。名前はまだ無い。',
};
const file = (name, content) => ({ name, mimeType: '', buffer: Buffer.from(content) });

test('a text that is pasted is learned in every script, as rows if it is rows, and survives a reload', async ({
  demo,
}) => {
  const { page } = await demo();
  await expect(page.locator('#start')).toBeEnabled();
  await page.check('input[name="data"][value="paste"]');
  for (const [language, text] of Object.entries(SAID)) {
    await page.fill('#data-text', text.repeat(20));
    await fill(page, { steps: 3, batch: 1, length: 8, sample: 3 });
    await says(page, '#run-title', 'reads a pasted text');
    await expect(page.locator('#prompt'), language).toHaveValue(new RegExp(text.slice(0, 3)));
    await page.click('#start');
    await untilState(page, 'done');
    await expect(page.locator('#samples li').first()).toContainText(text.slice(0, 3));
    assert.equal(await page.locator('main .fault:visible').count(), 0, language);
    await page.click('#again');
  }
  await page.fill('#data-text', '{"prompt": "2+2?", "completion": "four"}\n'.repeat(20));
  await says(page, '#lesson-facts', 'jsonl, 20 rows');
  await page.fill('#data-text', `prompt,completion\n${'2+2?,four\n'.repeat(20)}`);
  await says(page, '#lesson-facts', 'pasted text: csv, 20 rows');
  await says(page, '#data-text-kept', 'a reload brings it back');
  await page.click('#theme');
  const theme = String(await page.getAttribute('html', 'data-theme'));
  await page.reload();
  await expect(page.locator('html')).toHaveAttribute('data-theme', theme);
  await expect(page.locator('#data-text')).toHaveValue(/^prompt,completion/);
  await says(page, '#lesson-facts', 'pasted text: csv, 20 rows');
  await page.fill('#data-text', 'It is a truth. '.repeat(14_000));
  await says(page, '#data-text-kept', 'more than 200 kB is not kept');
  await page.fill('#data-text', '');
  await says(page, '#start-why', 'Paste or type a text first.');
  await expect(page.locator('#start')).toBeDisabled();
});

test('files go where they belong, wherever they are dropped, and others are named', async ({
  demo,
}) => {
  const { page } = await demo('/demo/', forget);
  const folder = mkdtempSync(join(tmpdir(), 'tabtune-anywhere-'));
  const path = (name, content) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  try {
    const weights = Object.entries(FOLDER).map(([name, content]) => path(name, content));
    const mixed = [
      ...weights,
      path('README.md', 'About'),
      path('story.txt', 'It is a truth. '.repeat(40)),
      path('letter.odd', '%PDF-1.7\n%'),
    ];
    await drop(page, '.masthead', { files: mixed }, async () =>
      expect(page.locator('#drop-hint')).toContainText('Drop it anywhere'),
    );
    await expect(page.locator('#drop-hint')).toBeHidden();
    await says(
      page,
      '#drop-said',
      /Chosen as the model: 5? ?.*\. Chosen as the data: story\.txt\./,
    );
    await says(page, '#drop-said', 'Not used: README.md. letter.odd is a PDF document');
    await says(page, '#run-title', 'reads story.txt');
    assert.equal(await page.isChecked('input[name="model"][value="files"]'), true);
    await says(page, '#data-facts', 'story.txt, 600 B');
    await drop(page, '#drop-data', { files: [join(folder, 'letter.odd')] });
    await says(page, '#data-fault', 'This is a PDF document: copy its text');
    await expect(page.locator('#start')).toBeDisabled();
    await says(page, '#start-why', 'These data cannot be used yet');
    await page.setInputFiles('#data-file', file('mine.txt', 'It is a truth. '.repeat(40)));
    await expect(page.locator('#data-fault')).toBeHidden();
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a text in an old code page is read once its encoding is chosen', async ({ demo }) => {
  const { page } = await demo('/demo/', forget);
  // «Все счастливые семьи похожи друг на друга» in Windows-1251.
  const letters = (text) =>
    Array.from(text, (letter) => {
      const at = letter.charCodeAt(0);
      return at < 0x80 ? at : at - 0x410 + 0xc0;
    });
  const old = Buffer.from(letters(`ascii\n${SAID.Russian.repeat(20)}`));
  await page.setInputFiles('#data-file', file('old.txt', old));
  await says(page, '#data-encoding-line', 'Все счастливые семьи');
  assert.equal(await page.inputValue('#data-encoding'), 'windows-1251');
  await says(page, '#start-why', 'cannot be used yet');
  await page.selectOption('#data-encoding', 'koi8-r');
  await expect(page.locator('#data-encoding-line')).not.toContainText('Все');
  await page.selectOption('#data-encoding', 'windows-1251');
  await page.click('#data-encoding-use');
  await says(page, '#data-encoding-said', 'Read as Cyrillic (Windows-1251).');
  await says(page, '#lesson-examples', 'Все счастливые');
  await expect(page.locator('#start')).toBeEnabled();
});

test('a fault names the field of the page, and is gone with its cause', async ({ demo }) => {
  const { page } = await demo('/demo/', forget);
  await page.fill('#s-batch', '0');
  await says(page, '#setup-fault', /^Batch size: expected .*, found 0/);
  await expect(page.locator('#s-batch')).toHaveAttribute('aria-invalid', 'true');
  await expect(page.locator('#start')).toBeDisabled();
  await page.click('#setup-fault a');
  await expect(page.locator('#s-batch')).toBeFocused();
  await page.fill('#s-batch', '1');
  await expect(page.locator('#setup-fault')).toBeHidden();
  await expect(page.locator('#start')).toBeEnabled();
  await page.setInputFiles('#data-file', file('rows.jsonl', '{"neither": 1}\n'));
  await says(page, '#lesson-fault', 'rows.jsonl');
  await page.setInputFiles('#model-files', file('broken.gguf', 'GGUF'));
  await says(page, '#model-fault', 'broken.gguf');
  await page.setInputFiles('#data-file', file('mine.txt', 'It is a truth. '.repeat(100)));
  await expect(page.locator('#lesson-fault')).toBeHidden();
  await page.check('input[name="model"][value="scratch"]');
  await expect(page.locator('#model-fault')).toBeHidden();
  await expect(page.locator('#start')).toBeEnabled();
});
