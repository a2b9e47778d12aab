// The system's Firefox on lavapipe, Mesa's Vulkan driver on the CPU, driven through WebDriver BiDi.
import { firefox } from 'playwright-core';
import { findFirefox, findLavapipe, missingFirefox } from '../../web/toolchain.mjs';
import { Browser } from './chromium.mjs';

/** WebGPU, which Firefox on Linux leaves off, in a process of its own, and nothing that uses a network. */
const PREFERENCES = {
  'dom.webgpu.enabled': true,
  'gfx.webgpu.ignore-blocklist': true,
  'layers.gpu-process.force-enabled': true,
  'dom.webgpu.allow-in-parent': true,
  'network.dns.disabled': true,
  'app.normandy.enabled': false,
  'messaging-system.rsexperimentloader.enabled': false,
  'services.settings.server': 'data:,#remote-settings-dummy/v1',
};

/** A Firefox with its own profile on disk. */
export class Firefox extends Browser {
  /** @override @param {string} profile */
  opened(profile) {
    const missing = missingFirefox();
    if (missing) throw new Error(missing);
    const driver = findLavapipe() ?? '';
    return firefox.launchPersistentContext(profile, {
      // Playwright drives a Firefox that it did not build through BiDi under the name of Mozilla's channel.
      channel: 'moz-firefox',
      executablePath: findFirefox(),
      headless: true,
      // Older versions of the Vulkan loader read the second name.
      env: { ...process.env, VK_DRIVER_FILES: driver, VK_ICD_FILENAMES: driver },
      firefoxUserPrefs: PREFERENCES,
      viewport: { width: 1280, height: 900 },
    });
  }

  /** @override @param {Parameters<Browser['open']>} given */
  async open(...given) {
    const opened = await super.open(...given);
    const { page } = opened;
    // Playwright's own fill adds digits to a number that is there.
    page.fill = (selector, value) =>
      page.locator(selector).evaluate((/** @type {HTMLInputElement} */ field, value) => {
        field.value = value;
        for (const type of ['input', 'change'])
          field.dispatchEvent(new Event(type, { bubbles: true }));
      }, value);
    return opened;
  }

  /** @override @param {string} command @param {string} profile */
  isFirst(command, profile) {
    return command.includes(`--profile ${profile} `) && !command.includes(' -contentproc ');
  }

  /** @override @param {string} command */
  isGpu(command) {
    return / -contentproc .* gpu $/.test(command);
  }
}
