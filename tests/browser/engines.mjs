// The browser that tests run in: Chromium, or the one that TABTUNE_BROWSER names.
import { Browser } from './chromium.mjs';
import { Firefox } from './firefox.mjs';

/** @type {Record<string, typeof Browser>} */
const ENGINES = { chromium: Browser, firefox: Firefox };

/** Starts the browser of these tests. @param {string[]} [flags] @param {{ profile?: string }} [options] */
export function launch(flags, options) {
  const name = process.env.TABTUNE_BROWSER || 'chromium';
  const engine = ENGINES[name];
  if (!engine)
    throw new Error(`TABTUNE_BROWSER is ${name}; expected ${Object.keys(ENGINES).join(' or ')}`);
  return engine.launch(flags, options);
}
