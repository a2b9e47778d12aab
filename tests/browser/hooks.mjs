// Hooks of a file of tests: a site and a browser, from before the first of them until after the last.
import { test } from '@playwright/test';
import { launch } from './engines.mjs';
import { serve } from './site.mjs';

/** @typedef {{ site: import('./site.mjs').Site, browser: import('./chromium.mjs').Browser }} Started */

/**
 * Starts and ends a site and a browser around the tests of a file. `folders` and `options` are those of the site, `flags` those of the browser.
 * @param {Record<string, string>} [folders] @param {import('./site.mjs').Options & { flags?: string[] }} given
 */
export function siteAndBrowser(folders, { flags, ...options } = {}) {
  const at = {
    .../** @type {Started} */ ({}),
    /** Opens a page of the site. @type {Started['browser']['open']} */
    open: (path, how) => at.browser.open(`${at.site.url}${path}`, how),
  };
  test.beforeAll(async () => {
    at.site = await serve(folders, options);
    at.browser = await launch(flags);
  });
  test.afterAll(async () => {
    await at.browser?.close();
    await at.site?.close();
  });
  return at;
}
