// The run of the demo's page: its steps and states, what is shown of it, and its log.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test as base, expect } from '@playwright/test';
import { siteAndBrowser } from './hooks.mjs';

/** @typedef {import('@playwright/test').Page} Page */

/**
 * Starts and ends a site and a browser, if none are given, around the tests of a file, which get `demo`: it opens the demo, and waits until it is
 * ready if it starts nothing itself. In the end the page is closed, and must have reported no error.
 */
export function demoTests(at = siteAndBrowser()) {
  /** @param {string} [path] @param {() => unknown} [script] */
  const open = async (path = '/demo/', script) => {
    const opened = await at.open(path, { script });
    if (path === '/demo/')
      await opened.page.waitForSelector('#start:enabled', { timeout: 180_000 });
    return opened;
  };
  /** @type {import('@playwright/test').Fixtures<{ demo: typeof open }>} */
  const fixtures = {
    demo: async ({}, use) => {
      /** @type {Awaited<ReturnType<typeof open>>[]} */
      const all = [];
      await use(async (...how) => {
        const opened = await open(...how);
        all.push(opened);
        return opened;
      });
      for (const { page, record } of all) {
        assert.deepEqual(record.errors, []);
        await page.close();
      }
    },
  };
  return { at, test: base.extend(fixtures) };
}

/** Runs in the page, before it: forgets the form of earlier tests. */
export function forget() {
  // The first page of a tab, which has no address, has no storage either.
  if (location.protocol.startsWith('http')) localStorage.clear();
}

/** Returns the text of an element. @param {Page} page @param {string} selector */
export const textOf = async (page, selector) => String(await page.textContent(selector));

/** Waits until an element has these words. @param {Page} page @param {string} selector @param {string | RegExp} words */
export const says = (page, selector, words) => expect(page.locator(selector)).toContainText(words);

/** Fills numbers of the form, by the ends of their ids. @param {Page} page @param {Record<string, number>} numbers */
export async function fill(page, numbers) {
  for (const [id, value] of Object.entries(numbers)) await page.fill(`#s-${id}`, String(value));
}

/** @param {Page} page */
export const stepOf = async (page) => Number(await page.getAttribute('#main', 'data-step'));

/** Waits until the page has done this many steps, and returns the loss and state that it then shows. @param {Page} page @param {number} step */
export async function untilStep(page, step) {
  await expect.poll(() => stepOf(page), { timeout: 180_000 }).toBeGreaterThanOrEqual(step);
  return {
    loss: Number(await textOf(page, '#f-loss')),
    state: await page.getAttribute('#main', 'data-state'),
  };
}

/** Waits until the run of the page is in this state. @param {Page} page @param {string} state */
export const untilState = (page, state, timeout = 180_000) =>
  expect(page.locator('#main')).toHaveAttribute('data-state', state, { timeout });

/** @param {Page} page */
export async function stop(page) {
  await page.click('#stop');
  await untilState(page, 'stopped');
}

/** Returns the visible facts of a run when it rests. @param {Page} page */
export async function shown(page) {
  // Figures are drawn in the next frame.
  await page.evaluate(
    () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
  );
  return page.evaluate(() => {
    const words = (/** @type {string} */ id) => document.querySelector(id).textContent;
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

/** Returns the steps in the log that the page offers. @param {Page} page */
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
