// The consumers of the package: how each is built and served.
import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { serve } from '../browser/site.mjs';
import { examples } from './examples.mjs';
import { lossesAt, lossesOf, textOf, withMap } from './page.mjs';
import { types } from './type-checks.mjs';

/** @typedef {import('./page.mjs').At} At */
/**
 * A project with the package: `fixture` is its folder, `packages` those whose versions are reported; `check` returns the losses of its page, if it
 * has one.
 * @typedef {{ about: string, fixture: string, packages?: string[], check: (at: At) => Promise<number[] | undefined> }} Consumer
 */

const ISOLATED = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
};
/** The strictest policy: workers from this origin's files alone. */
const STRICT =
  "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self' data: blob:";
const OPEN = { 'access-control-allow-origin': '*', 'cross-origin-resource-policy': 'cross-origin' };

/** Copies the page of a project next to what its bundler made. @param {At} at @param {string} to */
const withPage = ({ folder }, to, page = 'index.html') =>
  cpSync(join(folder, page), join(folder, to, 'index.html'));

/** Copies the worker and the wasm of the package there, as its README says. @param {At} at @param {string} to */
const withAssets = ({ folder }, to) =>
  ['worker.js', 'tabtune_bg.wasm'].forEach((name) =>
    cpSync(join(folder, 'node_modules/tabtune/dist', name), join(folder, to, name)),
  );

/** The plain page, served with these headers and this policy. @param {At} at @param {import('../browser/site.mjs').Options & { policy?: string }} [options] */
const plain = (at, { policy, ...headers } = {}) =>
  lossesOf(at, '.', { policy: withMap(textOf(at, 'index.html'), policy), ...headers });

/** The plain page, with the package on a site of another origin. @param {At} at */
async function secondOrigin(at) {
  const cdn = await serve(
    { '/tabtune/': join(at.folder, 'node_modules/tabtune/dist') },
    { policy: null, ...OPEN },
  );
  try {
    const page = textOf(at, 'index.html').replace(
      './node_modules/tabtune/dist',
      `${cdn.url}/tabtune`,
    );
    const policy = withMap(page)
      .replace("script-src 'self'", `$& ${cdn.url}`)
      .replace("connect-src 'self'", `$& ${cdn.url}`)
      .replace("worker-src 'self' blob:", `$& ${cdn.url}`);
    const scripts = { '/app/cdn.html': { text: page } };
    const site = await serve({ '/app/': at.folder }, { policy, scripts });
    try {
      return await lossesAt(at.browser, `${site.url}/app/cdn.html`);
    } finally {
      void site.close();
    }
  } finally {
    void cdn.close();
  }
}

/** A page whose second load comes from the cache of its service worker, when the site is gone. @param {At} at */
async function offline(at) {
  const policy = withMap(textOf(at, 'offline.html'));
  const site = await serve({ '/app/': at.folder }, { policy });
  try {
    const url = `${site.url}/app/offline.html`;
    const online = await lossesAt(at.browser, url);
    void site.close();
    await assert.rejects(fetch(url), 'the site is gone');
    assert.deepEqual(await lossesAt(at.browser, url), online);
    return online;
  } finally {
    void site.close();
  }
}

/** A server that renders: what it wrote into the page, and what the page trains. @param {At} at @param {string[]} line */
const rendered = (at, line) =>
  at.serving(line, async (url) => {
    const html = await (await fetch(url)).text();
    assert.match(html, /\d+\.\d+\.\d+ false UNSUPPORTED_BROWSER/);
    return lossesAt(at.browser, url);
  });

/** @type {Record<string, Consumer>} */
export const CONSUMERS = {
  'import-map': { about: 'a page with an import map', fixture: 'plain', check: plain },
  'second-origin': {
    about: 'an import map to a second origin, as of a CDN',
    fixture: 'plain',
    check: secondOrigin,
  },
  'strict-csp': {
    about: "the strictest policy: worker-src 'self' without blob:",
    fixture: 'plain',
    check: (at) => plain(at, { policy: STRICT }),
  },
  isolated: {
    about: 'COOP same-origin and COEP require-corp',
    fixture: 'plain',
    check: (at) => plain(at, ISOLATED),
  },
  'service-worker': {
    about: 'a service worker that asks its cache first: the second load without a network',
    fixture: 'plain',
    check: offline,
  },
  'vite-dev': {
    about: 'served in development',
    fixture: 'vite',
    packages: ['vite'],
    check: (at) => at.serving(['vite', '--host', '127.0.0.1'], (url) => lossesAt(at.browser, url)),
  },
  'vite-build': {
    about: 'built, below a path',
    fixture: 'vite',
    packages: ['vite'],
    async check(at) {
      await at.shell('vite', 'build', '--base', './');
      return lossesOf(at, 'dist');
    },
  },
  'vite-7': {
    about: 'the version before, served and built',
    fixture: 'vite-7',
    packages: ['vite'],
    async check(at) {
      const dev = ['vite', '--host', '127.0.0.1'];
      const served = await at.serving(dev, (url) => lossesAt(at.browser, url));
      await at.shell('vite', 'build', '--base', './');
      const losses = await lossesOf(at, 'dist');
      assert.deepEqual(served, losses);
      return losses;
    },
  },
  webpack: {
    about: 'production',
    fixture: 'webpack',
    packages: ['webpack'],
    async check(at) {
      await at.shell('webpack');
      withPage(at, 'dist');
      return lossesOf(at, 'dist');
    },
  },
  'webpack-worker': {
    about: "production, an app's own worker that imports tabtune/worker",
    fixture: 'webpack',
    packages: ['webpack'],
    async check(at) {
      await at.shell('webpack');
      withPage(at, 'dist', 'own.html');
      return lossesOf(at, 'dist');
    },
  },
  rollup: {
    about: 'the worker as an entry with an asset plugin; two files copied',
    fixture: 'rollup',
    packages: ['rollup', '@web/rollup-plugin-import-meta-assets'],
    async check(at) {
      await at.shell('rollup', '--config');
      withAssets(at, 'copied');
      for (const folder of ['dist', 'copied']) withPage(at, folder);
      const losses = await lossesOf(at, 'dist');
      assert.deepEqual(await lossesOf(at, 'copied'), losses);
      return losses;
    },
  },
  esbuild: {
    about: 'two files copied',
    fixture: 'esbuild',
    packages: ['esbuild'],
    async check(at) {
      await at.shell('esbuild', 'main.js', '--bundle', '--format=esm', '--outdir=dist');
      withAssets(at, 'dist');
      withPage(at, 'dist');
      return lossesOf(at, 'dist');
    },
  },
  next: {
    about: 'a server component that imports it, a client component that trains',
    fixture: 'next',
    packages: ['next', 'react'],
    async check(at) {
      await at.shell('next', 'build');
      return rendered(at, ['next', 'start', '--hostname', '127.0.0.1', '--port', '0']);
    },
  },
  sveltekit: {
    about: 'rendered on the server, trains in the page',
    fixture: 'sveltekit',
    packages: ['@sveltejs/kit', 'svelte', 'vite'],
    async check(at) {
      await at.shell('vite', 'build');
      return rendered(at, ['vite', 'preview', '--host', '127.0.0.1', '--port', '4199']);
    },
  },
  typescript: {
    about: 'moduleResolution bundler and node16, every entry, skipLibCheck false',
    fixture: 'typescript',
    packages: ['typescript'],
    check: types,
  },
  examples: {
    about: 'the programs of examples/, with what they need of others',
    fixture: 'examples',
    packages: ['react', 'svelte', '@wllama/wllama'],
    check: examples,
  },
};
