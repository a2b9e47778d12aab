// A Chromium without Playwright, which treats every page as visible: controlled through the pipe of its own protocol.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FLAGS } from '../browser/chromium.mjs';
import { findChromium } from '../../web/toolchain.mjs';

export class PlainBrowser {
  #profile = mkdtempSync(join(tmpdir(), 'tabtune-profile-'));
  #child;
  #waiting = new Map();
  #next = 1;

  static start() {
    const browser = new PlainBrowser();
    const flags = [
      ...FLAGS,
      '--headless=new',
      `--user-data-dir=${browser.#profile}`,
      '--remote-debugging-pipe',
      'about:blank',
    ];
    browser.#child = spawn(String(findChromium()), flags, {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
      detached: true,
    });
    let rest = '';
    browser.#child.stdio[4].setEncoding('utf8').on('data', (text) => {
      const messages = (rest + text).split('\0');
      rest = messages.pop() ?? '';
      for (const message of messages) browser.#receive(JSON.parse(message));
    });
    return browser;
  }

  #receive({ id, result, error }) {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error) waiting?.reject(new Error(error.message));
    else waiting?.resolve(result);
  }

  send(method, params = {}, sessionId) {
    const id = this.#next++;
    this.#child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  /** Opens a tab in front of the others; `do` evaluates an expression in it. */
  async open(url) {
    const { targetId } = await this.send('Target.createTarget', { url });
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
    const evaluate = async (expression) => {
      const { result, exceptionDetails } = await this.send(
        'Runtime.evaluate',
        { expression, awaitPromise: true, returnByValue: true },
        sessionId,
      );
      if (exceptionDetails)
        throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
      return result.value;
    };
    for (
      const end = Date.now() + 10_000;
      (await evaluate('document.readyState + location.href')) !== `complete${url}`;
    ) {
      if (Date.now() > end) throw new Error(`${url} was not loaded`);
      await new Promise((done) => setTimeout(done, 20));
    }
    return {
      do: evaluate,
      close: () => this.send('Target.closeTarget', { targetId }),
      front: () => this.send('Target.activateTarget', { targetId }),
    };
  }

  async end() {
    const gone = new Promise((done) => this.#child.on('close', done));
    process.kill(-this.#child.pid, 'SIGKILL');
    await gone;
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 5 });
  }
}
