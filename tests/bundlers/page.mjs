// Pages of the consumers: opened in Chromium, until the program has written its losses into the page.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { POLICY } from '../../web/policy.mjs';
import { serve } from '../browser/site.mjs';

/** @typedef {import('./install.mjs').Project & { browser: import('../browser/chromium.mjs').Browser }} At */

const HANGING_MILLIS = 300_000;
const STEPS = 5;

/**
 * Opens a page and returns the losses of its program; an error on the console fails.
 * @param {At['browser']} browser @param {string} url
 */
export async function lossesAt(browser, url) {
  const { page, record } = await browser.open('about:blank');
  try {
    const failed = new Promise((_, reject) => {
      page.on('pageerror', reject);
      page.on('console', (message) => {
        if (message.type() === 'error')
          reject(new Error(`on the console: ${message.text()} ${message.location().url}`));
      });
    });
    failed.catch(() => undefined);
    const shown = async () => {
      await page.goto(url);
      const options = { state: /** @type {const} */ ('attached'), timeout: HANGING_MILLIS };
      return page.locator('[data-losses]').first().waitFor(options);
    };
    await Promise.race([shown(), failed]);
    const text = await page.locator('[data-losses]').first().getAttribute('data-losses');
    /** @type {number[]} */
    const losses = JSON.parse(`${text}`);
    assert.deepEqual(record.errors, []);
    assert.equal(losses.length, STEPS);
    assert.ok(losses.every(Number.isFinite) && losses[0] > losses[STEPS - 1], `${losses}`);
    return losses;
  } finally {
    await page.close();
  }
}

/** The policy of a page with an import map, which is a script in the page and has to be named by its sum. @param {string} page @param {string} policy */
export function withMap(page, policy = POLICY) {
  const [, map = ''] = /<script type="importmap">(.*?)<\/script>/s.exec(page) ?? [];
  const sum = createHash('sha256').update(map).digest('base64');
  return policy.replace("script-src 'self'", `$& 'sha256-${sum}'`);
}

/**
 * Serves the folder of a project, or one in it, and returns the losses of its page.
 * @param {At} at @param {string} [inside] @param {import('../browser/site.mjs').Options} [options]
 */
export async function lossesOf({ browser, folder }, inside = '.', options = {}) {
  const site = await serve({ '/app/': join(folder, inside) }, options);
  try {
    return await lossesAt(browser, `${site.url}/app/index.html`);
  } finally {
    // It serves no one from now on; a connection that the browser opened in advance would be waited for.
    void site.close();
  }
}

/** The text of a file of a project. @param {At} at @param {string} name */
export const textOf = ({ folder }, name) => readFileSync(join(folder, name), 'utf8');
