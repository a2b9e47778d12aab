// The files that the demo's page gives away: one for each place, under names that differ, with the Modelfile; and the reason where there is none.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { root } from '../../web/toolchain.mjs';
import { demoTests, fill, forget, says, untilState, untilStep } from './demo-run.mjs';

/** @typedef {import('@playwright/test').Page} Page */

const MODEL = join(root, 'tests/golden/lora/tiny.gguf');
const CHATS = join(root, 'tests/golden/inputs/boundary');
const SHORT = { steps: 2, batch: 1, length: 8, sample: 0 };

const { test } = demoTests();

/** Presses a button, and returns the file that is downloaded. @param {Page} page @param {string} selector */
async function downloaded(page, selector) {
  const [file] = await Promise.all([page.waitForEvent('download'), page.click(selector)]);
  const buffer = readFileSync(await file.path());
  return { name: file.suggestedFilename(), mimeType: 'application/octet-stream', buffer };
}
const button = (/** @type {string} */ place) => `#take-${place} button[aria-label^="Download"]`;

test('each place gets a file of its own, and the merged GGUF and the checkpoint are read again', async ({
  demo,
}) => {
  const { page } = await demo();
  await page.setInputFiles('#model-files', MODEL);
  await says(page, '#t-all', /./);
  await page.check('input[name="trained"][value="adapter"]');
  await fill(page, { ...SHORT, rank: 2, alpha: 4 });
  await page.click('#start');
  await untilState(page, 'done');
  await page.click('#away');
  await expect(page.locator('#take-title')).toBeFocused();
  await page.waitForSelector('#take-ollama');
  await page.locator('#take-list summary', { hasText: 'Model card' }).click();
  await page.fill('#take-data', 'A novel');
  const stem = 'tiny-on-pride-and-prejudice';
  /** @type {Record<string, Awaited<ReturnType<typeof downloaded>>>} */
  const files = {};
  for (const place of ['ollama', 'transformers', 'peft', 'adapter', 'terminal'])
    files[place] = await downloaded(page, button(place));
  assert.deepEqual(
    Object.values(files).map(({ name }) => name),
    [
      `${stem}.gguf`,
      `${stem}.zip`,
      `${stem}-adapter.zip`,
      `${stem}-adapter.gguf`,
      `${stem}-step-2.tabtune`,
    ],
  );
  await says(
    page,
    '#take-terminal',
    `tabtune train --resume ${stem}-step-2.tabtune --data pride-and-prejudice.txt --model tiny.gguf --to ${stem} --steps +100 --override steps`,
  );
  assert.match(files.transformers?.buffer.toString('latin1') ?? '', /A novel/);
  const { name, buffer } = await downloaded(page, '#take-modelfile');
  assert.equal(name, 'Modelfile');
  assert.match(buffer.toString(), new RegExp(`^FROM ./${files.ollama?.name}$`, 'm'));
  assert.match(buffer.toString(), /^PARAMETER temperature 0\.7$/m);

  await page.click('#export');
  assert.equal(await page.inputValue('#x-data'), 'A novel');
  await page.selectOption('#x-choice', { label: 'Hugging Face folder, safetensors' });
  assert.equal((await downloaded(page, '#x-download')).name, `${stem}.zip`);
  await page.waitForSelector('#x-receipt li');
  await page.click('#x-close');

  await page.click('#again');
  await page.setInputFiles('#model-files', files.ollama ?? MODEL);
  await says(page, '#run-title', `${stem}.gguf`);
  await page.click('#start');
  await untilState(page, 'done');
  const runs = await page.locator('#checkpoints > li').count();
  await page.setInputFiles('#checkpoint-files', files.terminal ?? MODEL);
  await expect(page.locator('#checkpoints > li')).toHaveCount(runs + 1);
});

test('places say why they cannot be reached, and the rest can be taken while paused and after a reload', async ({
  demo,
}) => {
  const { page } = await demo('/demo/', forget);
  await says(page, '#take-said', 'First train one, or resume a run.');
  await fill(page, { ...SHORT, steps: 2000 });
  await page.click('#start');
  await untilStep(page, 1);
  await says(page, '#take-said', 'Pause the run');
  await page.click('#pause');
  await untilState(page, 'paused');
  await says(page, '#take-peft', 'there is no adapter');
  await says(page, '#take-terminal', /--to small-llama-on-pride-and-prejudice\s*Copy/);
  assert.equal(await page.isVisible(button('peft')), false);
  await page.reload();
  await page.waitForSelector('#goon:not([hidden])', { timeout: 60_000 });
  assert.equal(await page.isVisible('#take-list'), false);
  await page.click('#goon');
  await untilState(page, 'running');
  await page.click('#pause');
  await untilState(page, 'paused');
  const { name, buffer } = await downloaded(page, button('browser'));
  assert.match(name, /^small-llama-on-pride-and-prejudice-step-\d+\.tabtune$/);
  assert.equal(buffer.subarray(0, 8).toString(), 'TABTUNE1');
  await says(page, '#take-browser', name);
  assert.match((await downloaded(page, button('transformers'))).name, /prejudice\.zip$/);
});

test('the Modelfile of a model that chats has its template, its stops and the system message', async ({
  demo,
}) => {
  const { page } = await demo();
  await page.setInputFiles(
    '#model-files',
    readdirSync(CHATS).map((name) => join(CHATS, name)),
  );
  await says(page, '#t-all', /./);
  await fill(page, SHORT);
  await page.click('#start');
  await untilState(page, 'done');
  await page.waitForSelector('#take-transformers');
  await page.locator('#take-ollama summary').first().click();
  await page.fill('#take-system', 'Be brief.');
  const { buffer } = await downloaded(page, '#take-modelfile');
  const turn = (/** @type {string} */ role, /** @type {string} */ content) =>
    `<|im_start|>${role}\n${content}<|im_end|>\n`;
  assert.ok(buffer.toString().includes(turn('user', '{{ .Content }}')));
});
