// Hooks of a file of tests: a site and a browser, from before the first of them until after the last.
import { test } from '@playwright/test';
import { Browser } from './chromium.mjs';
import { serve } from './site.mjs';

/**
 * Starts and ends a site and a browser around the tests of a file. `folders` and `options` are those of the site, `flags` those of the browser.
 * @param {Record<string, string>} [folders] @param {import('./site.mjs').Options & { flags?: string[] }} given
 * @returns {{ site: any, browser: any, open: (path: string, how?: object) => Promise<any> }}
 */
export function siteAndBrowser(folders, { flags, ...options } = {}) {
  /** @type {any} */
  const at = {
    site: undefined,
    browser: undefined,
    open: (path, how) => at.browser.open(`${at.site.url}${path}`, how),
  };
  test.beforeAll(async () => {
    at.site = await serve(folders, options);
    at.browser = await Browser.launch(flags);
  });
  test.afterAll(async () => {
    await at.browser?.close();
    await at.site?.close();
  });
  return at;
}
