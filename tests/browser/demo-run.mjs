// The run of the demo's page: its steps and states, what is shown of it, and its log.
import { readFileSync } from 'node:fs';

/** Returns the text of an element. @param {import('playwright-core').Page} page @param {string} selector */
export const textOf = async (page, selector) => String(await page.textContent(selector));

/** Waits until the page has done this many steps, and returns the loss and state that it then shows. */
export async function untilStep(page, step) {
  await page.waitForFunction(
    (wanted) => Number(document.querySelector('#main').dataset.step) >= wanted,
    step,
    { timeout: 180_000 },
  );
  return {
    loss: Number(await textOf(page, '#f-loss')),
    state: await page.getAttribute('#main', 'data-state'),
  };
}

/** Waits until the run of the page is in this state. */
export const untilState = (page, state, timeout) =>
  page.waitForFunction(
    (wanted) => document.querySelector('#main').dataset.state === wanted,
    state,
    { timeout },
  );

export async function stop(page) {
  await page.click('#stop');
  await untilState(page, 'stopped', 60_000);
}

/** Returns the visible facts of a run when it rests. */
export async function shown(page) {
  // Figures are drawn in the next frame.
  await page.evaluate(
    () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
  );
  return page.evaluate(() => {
    const words = (id) => document.querySelector(id).textContent;
    const samples = [...document.querySelectorAll('#samples li')].map((item) => item.textContent);
    return {
      step: parseInt(words('#f-step').replace(/\D/, ''), 10),
      loss: words('#f-loss'),
      summary: words('#loss-summary'),
      samples: samples.length,
      newest: samples[0],
    };
  });
}

/** Returns the steps in the log that the page offers. */
export async function loggedSteps(page) {
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.evaluate(() => document.querySelector('#log').click()),
  ]);
  const lines = readFileSync(await file.path(), 'utf8')
    .trim()
    .split('\n')
    .slice(1);
  return lines.map((line) => Number(line.split(',')[0]));
}
