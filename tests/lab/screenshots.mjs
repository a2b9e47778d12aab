// npm run lab -- screenshots [FOLDER]: pictures of the built demo in the middle of a run. The first is web/demo.png, which README.md shows; the
// others (dark, and as narrow as a telephone) are for inspection after a change of the page; they are written to the folder that is printed.
import { mkdirSync, mkdtempSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { root, run } from '../../web/toolchain.mjs';
import { Browser } from '../browser/chromium.mjs';
import { serve } from '../browser/site.mjs';

const PICTURE = join(root, 'web', 'demo.png');
const PICTURE_BYTES = 300_000;
/** Number of steps, and the step at which the run is paused: by then curve and samples have something to show. */
const STEPS = { all: 1000, shown: 840 };
const WIDE = { width: 1280, height: 1085 };
const NARROW = { width: 360, height: 780 };
/** More training than the demo's defaults for a software adapter, so that its samples have words. */
const NUMBERS = { 's-steps': STEPS.all, 's-batch': 8, 's-length': 64, 's-sample': 120 };

const rest = (page) =>
  page.evaluate(
    () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
  );

/** Runs the built-in model until it is paused for the picture. */
async function train(page) {
  await page.waitForSelector('#start:enabled', { timeout: 180_000 });
  for (const [id, value] of Object.entries(NUMBERS)) await page.fill(`#${id}`, String(value));
  await page.click('#start');
  const reached = (step) => Number(document.querySelector('#main').dataset.step) >= step;
  await page.waitForFunction(reached, STEPS.shown, { timeout: 20 * 60_000 });
  await page.click('#pause');
  await page.waitForFunction(
    () => document.querySelector('#main').dataset.state === 'paused',
    undefined,
    { timeout: 60_000 },
  );
}

/** Takes pictures of the first view of the page, and of the whole page. */
async function take(page, folder, name, size) {
  await page.setViewportSize(size);
  await page.evaluate(() => scrollTo(0, 0));
  await rest(page);
  await page.screenshot({ path: join(folder, `${name}.png`) });
  await page.screenshot({ path: join(folder, `${name}-whole.png`), fullPage: true });
}

async function main() {
  const folder =
    process.argv[2] === undefined
      ? mkdtempSync(join(tmpdir(), 'tabtune-screenshots-'))
      : resolve(process.argv[2]);
  mkdirSync(folder, { recursive: true });
  await run('vite', ['build', '--config', join('web', 'vite.config.ts')]);
  const site = await serve();
  const browser = await Browser.launch();
  try {
    const { page, record } = await browser.open(`${site.url}/demo/`);
    await page.emulateMedia({ colorScheme: 'light' });
    await take(page, folder, 'before', WIDE);
    await train(page);
    await take(page, folder, 'light', WIDE);
    await page.screenshot({ path: PICTURE });
    await take(page, folder, 'light-narrow', NARROW);
    await page.emulateMedia({ colorScheme: 'dark' });
    await take(page, folder, 'dark', WIDE);
    await take(page, folder, 'dark-narrow', NARROW);
    if (record.errors.length > 0)
      throw new Error(`the page complained: ${record.errors.join('; ')}`);
  } finally {
    await browser.close();
    await site.close();
  }
  const { size } = statSync(PICTURE);
  if (size >= PICTURE_BYTES)
    throw new Error(`${PICTURE} has ${size} bytes; it is to stay below ${PICTURE_BYTES}`);
  console.log(`${PICTURE}: ${size} bytes\nfor your eyes: ${folder}`);
}

try {
  await main();
} catch (/** @type {any} */ error) {
  console.error(`screenshots: ${error.message}`);
  process.exitCode = 1;
}
