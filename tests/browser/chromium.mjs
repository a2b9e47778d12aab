// A real Chromium on a software adapter: flags, profiles, pages that record everything that goes wrong, and its sudden
// death. What it shares with Firefox (firefox.mjs) is the class.
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { findChromium } from '../../web/toolchain.mjs';

/** WebGPU on SwiftShader, and nothing that uses a network. */
export const FLAGS = [
  '--enable-unsafe-webgpu',
  '--use-webgpu-adapter=swiftshader',
  '--disable-quic',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-extensions',
  '--no-first-run',
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
  ...(process.platform === 'linux' && process.getuid?.() === 0 ? ['--no-sandbox'] : []),
];
/** Returns the processes of this machine: number, process group and command line. */
function processes() {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
        const [, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        return [
          {
            pid: Number(name),
            group: Number(group),
            command: `${readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ')} `,
          },
        ];
      } catch {
        return []; // ended in the meantime
      }
    });
}

/**
 * Runs `work(module, argument)` in a page, where `module` is the one at `address`. The function is passed as text, since
 * the page's policy allows no eval; the protocol's own evaluation is exempt.
 * @template M, A, R
 * @param {import('playwright-core').Page} page @param {string} address
 * @param {(module: M, argument: A) => R} work @param {A} [argument] @returns {Promise<Awaited<R>>}
 */
export const inModule = (page, address, work, argument) =>
  page.evaluate(
    `(async (argument) => (${work})(await import('${address}'), argument))(${JSON.stringify(argument ?? null)})`,
  );

/** A browser with its own profile on disk; stored data survive `restart`. */
export class Browser {
  #profile;
  #ownsProfile;
  #context = /** @type {import('playwright-core').BrowserContext} */ (
    /** @type {unknown} */ (undefined)
  );
  #flags;

  /**
   * Starts a browser. `flags` are added to those of every scenario; `profile` is a folder that remains after `close`.
   * @param {string[]} flags @param {{ profile?: string }} options
   */
  static async launch(flags = [], { profile } = {}) {
    const browser = new this();
    browser.#ownsProfile = profile === undefined;
    browser.#profile = profile ?? mkdtempSync(join(tmpdir(), 'tabtune-profile-'));
    browser.#flags = flags;
    await browser.start();
    return browser;
  }

  /** Starts on the same profile, after `kill`. */
  async start() {
    this.#context = await this.opened(this.#profile, this.#flags);
  }

  /**
   * Returns the window of a new process on this profile.
   * @protected
   * @param {string} profile @param {string[]} flags
   */
  opened(profile, flags) {
    const executablePath = findChromium();
    if (!executablePath)
      throw new Error('no Chromium: run npm run setup, or set CHROMIUM to its path');
    // Playwright's own --headless is the old shell, which has no WebGPU.
    const options = {
      executablePath,
      headless: false,
      args: ['--headless=new', ...FLAGS, ...flags],
      viewport: { width: 1280, height: 900 },
    };
    return chromium.launchPersistentContext(profile, options);
  }

  /** Ends the process and starts it again on the same profile. */
  async restart() {
    await this.#context.close();
    await this.start();
  }

  async close() {
    await this.#context.close();
    if (this.#ownsProfile) rmSync(this.#profile, { recursive: true, force: true, maxRetries: 5 });
  }

  /**
   * Returns whether a command line is that of the browser's first process.
   * @protected
   * @param {string} command @param {string} profile
   */
  isFirst(command, profile) {
    return command.includes(`--user-data-dir=${profile} `) && !command.includes(' --type=');
  }

  /**
   * Returns whether a command line is that of the GPU process.
   * @protected
   * @param {string} command
   */
  isGpu(command) {
    return command.includes(' --type=gpu-process ');
  }

  /** Returns this browser's processes: those of its group, found by the profile that the first of them names. */
  #processes() {
    const all = processes();
    const own = all.find(({ command }) => this.isFirst(command, this.#profile));
    return { group: own?.group, all: own ? all.filter(({ group }) => group === own.group) : [] };
  }

  /** Kills the whole browser immediately with SIGKILL; the profile remains as it is on the disk. */
  async kill() {
    const { group } = this.#processes();
    if (group === undefined || group <= 1)
      throw new Error('the browser has no process group of its own');
    process.kill(-group, 'SIGKILL');
    await this.#context.close().catch(() => undefined);
    for (const until = Date.now() + 10_000; this.#processes().group !== undefined;) {
      if (Date.now() > until) throw new Error('the browser outlived kill -9');
      await new Promise((done) => setTimeout(done, 20));
    }
  }

  /** The folder of the profile. */
  get profile() {
    return this.#profile;
  }

  get gpuProcess() {
    return this.#processes().all.find(({ command }) => this.isGpu(command))?.pid;
  }

  /** Kills only the GPU process with SIGKILL. */
  killGpu() {
    const pid = this.gpuProcess;
    if (pid === undefined) throw new Error('no GPU process runs');
    process.kill(pid, 'SIGKILL');
  }

  /** Returns the resident bytes of the GPU process, which hold all GPU memory of a software adapter. */
  gpuBytes() {
    const found = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${this.gpuProcess}/status`, 'utf8'));
    if (found === null) throw new Error('the GPU process states no VmRSS');
    return Number(found[1]) * 1024;
  }

  get version() {
    return this.#context.browser()?.version() ?? '';
  }

  /**
   * Opens a page; returns it with the record of its console errors, uncaught errors, failed requests and requested origins. `script` runs before the
   * page's own.
   * @param {string} url @param {{ script?: (argument: any) => unknown, argument?: unknown }} [options]
   */
  async open(url, { script, argument } = {}) {
    const page = await this.#context.newPage();
    // An action on what is not there fails long before its test ends.
    page.setDefaultTimeout(300_000);
    if (script) await page.addInitScript(script, argument);
    const record = { errors: /** @type {string[]} */ ([]), origins: new Set() };
    page.on('console', (message) => {
      if (message.type() === 'error') record.errors.push(message.text());
    });
    page.on('pageerror', (error) => record.errors.push(`uncaught: ${error.message}`));
    page.on('requestfailed', (request) => {
      const reason = request.failure()?.errorText;
      // A page that ends a worker whose script still loads calls the load off.
      const calledOff = reason === 'net::ERR_ABORTED' || reason === 'NS_BINDING_ABORTED';
      if (calledOff && /\bworker[^/]*\.js$/.test(request.url())) return;
      record.errors.push(`failed: ${request.url()} ${reason}`);
    });
    page.on('request', (request) => {
      if (!/^(data|blob):/.test(request.url())) record.origins.add(new URL(request.url()).origin);
    });
    await page.goto(url);
    return { page, record };
  }
}
