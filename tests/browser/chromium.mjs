// A real Chromium on a software adapter: flags, profiles, pages that record everything that goes wrong.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { findChromium } from '../../web/toolchain.mjs';

/** WebGPU on SwiftShader, and nothing that looks for a network. */
const FLAGS = [
  '--enable-unsafe-webgpu',
  '--use-webgpu-adapter=swiftshader',
  '--disable-quic',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-extensions',
  '--no-first-run',
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
  ...(process.platform === 'linux' && process.getuid() === 0 ? ['--no-sandbox'] : []),
];

/** A browser with a profile on disk of its own; what it stored outlives `restart`. */
export class Browser {
  #profile = mkdtempSync(join(tmpdir(), 'tabtune-profile-'));
  #context;
  #flags;

  /** `flags` are added to those that every scenario has. */
  static async launch(flags = []) {
    const browser = new Browser();
    browser.#flags = [...FLAGS, ...flags];
    await browser.#start();
    return browser;
  }

  async #start() {
    const executablePath = findChromium();
    if (!executablePath) throw new Error('no Chromium: run npm run setup, or set CHROMIUM to its path');
    // Playwright's own --headless is the old shell, which has no WebGPU.
    const options = { executablePath, headless: false, args: ['--headless=new', ...this.#flags], viewport: { width: 1280, height: 900 } };
    this.#context = await chromium.launchPersistentContext(this.#profile, options);
  }

  /** Ends the process and starts it again on the same profile. */
  async restart() {
    await this.#context.close();
    await this.#start();
  }

  async close() {
    await this.#context.close();
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 5 });
  }

  get version() {
    return this.#context.browser()?.version() ?? '';
  }

  /** A page and the record of its console errors, uncaught errors, failed requests and requested origins. `script` runs before the page's own. */
  async open(url, { script } = {}) {
    const page = await this.#context.newPage();
    if (script) await page.addInitScript(script);
    const record = { errors: [], origins: new Set() };
    page.on('console', (message) => {
      if (message.type() === 'error') record.errors.push(message.text());
    });
    page.on('pageerror', (error) => record.errors.push(`uncaught: ${error.message}`));
    page.on('requestfailed', (request) => record.errors.push(`failed: ${request.url()} ${request.failure()?.errorText}`));
    page.on('request', (request) => {
      if (!/^(data|blob):/.test(request.url())) record.origins.add(new URL(request.url()).origin);
    });
    await page.goto(url);
    return { page, record };
  }
}
