/** Reads of the GPU in Firefox, which looks for ended work when something is submitted. */
import { expect, it } from 'vitest';
import { DeviceWatch } from '../src/worker/device.js';
import type { WatchedScope } from '../src/worker/device.js';
import { Nudges } from '../src/worker/nudge.js';

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0';
const CHROME = 'Mozilla/5.0 (X11; Linux x86_64) Chrome/156.0.0.0 Safari/537.36';

/** A queue that ends a wait at the third submission. */
function queue() {
  const waits: (() => void)[] = [];
  const seen = { submitted: 0 };
  return {
    seen,
    submit: (commands: Iterable<unknown>) => {
      expect([...commands]).toEqual([]);
      if (++seen.submitted % 3 === 0) waits.shift()?.();
    },
    wait: () => new Promise<void>((done) => waits.push(done)),
  };
}

it('each_wait_ends_by_submissions_which_end_with_it', async () => {
  const fake = queue();
  const nudges = new Nudges(fake);
  await nudges.during(fake.wait());
  await Promise.all([nudges.during(fake.wait()), nudges.during(fake.wait())]);
  expect(fake.seen.submitted).toBe(9);
  const failed = nudges.during(Promise.reject(new Error('no map')));
  await expect(failed).rejects.toThrow('no map');
  const after = fake.seen.submitted;
  await new Promise((done) => setTimeout(done, 50));
  expect(fake.seen.submitted - after).toBeLessThanOrEqual(1);
});

/** Opens a device in a browser, and reads from it; a buffer is mapped at the third submission. */
async function read(userAgent: string) {
  const fake = queue();
  class Adapter {
    readonly features = new Set();
    requestDevice(): Promise<unknown> {
      const device = { queue: fake, lost: new Promise(() => undefined), features: new Set() };
      return Promise.resolve(Object.assign(new EventTarget(), device));
    }
  }
  class Buffer {
    mapAsync(): Promise<void> {
      return fake.wait();
    }
  }
  const scope = { GPUAdapter: Adapter, GPUBuffer: Buffer, navigator: { userAgent } };
  new DeviceWatch().install(scope as unknown as WatchedScope, () => undefined);
  await new Adapter().requestDevice();
  return { seen: fake.seen, mapped: new Buffer().mapAsync() };
}

it('only_reads_of_firefox_submit', async () => {
  const firefox = await read(FIREFOX);
  await firefox.mapped;
  expect(firefox.seen.submitted).toBe(3);
  const chrome = await read(CHROME);
  await new Promise((done) => setTimeout(done, 50));
  expect(chrome.seen.submitted).toBe(0);
});
