// A tab behind another: training continues at the same rate, and saves that are due are made.
import { serve } from '../browser/site.mjs';
import { FOLDERS, TINY } from './arena.mjs';
import { PlainBrowser } from './plain.mjs';

/** Time after the last save within which hiding does not save. */
const SAVE_APART_SECS = 30;

/** A page hidden for `secs` makes at least the share `least` of its visible steps. */
export async function hidden(_, tally, { secs, least }) {
  const site = await serve(FOLDERS);
  const browser = PlainBrowser.start();
  try {
    const page = await browser.open(`${site.url}/`);
    // Does the same as the subject's module, with little output.
    await page.do(`(async () => {
      globalThis.s = await import('/torture/subject.mjs');
      const { autosave, ...options } = ${JSON.stringify(TINY.options)};
      await s.create({ ...${JSON.stringify(TINY)}, options: { ...options, steps: 1000000, logEvery: 8 } });
      globalThis.running = s.run().catch((error) => (globalThis.failure = error.message));
    })()`);
    const rate = async (secs) => {
      const steps = () => page.do('s.current().completedSteps');
      const [from, started] = [await steps(), performance.now()];
      await new Promise((done) => setTimeout(done, secs * 1000));
      return ((await steps()) - from) / ((performance.now() - started) / 1000);
    };
    await rate(1);
    const long = Math.min(Math.max(secs / 10, 2), 60);
    const before = await rate(long);
    const other = await browser.open(`${site.url}/`);
    const state = await page.do('document.visibilityState');
    // Not within 30 s of the last save, so the short form sees none.
    const hiddenAt = Date.now();
    const savesAtHiding = async () =>
      page.do(
        `s.timeline.filter(({ type, at }) => type === 'checkpoint' && at >= ${hiddenAt} - 2000).length`,
      );
    if (long > SAVE_APART_SECS) {
      for (const end = Date.now() + 10_000; (await savesAtHiding()) === 0 && Date.now() < end;)
        await new Promise((done) => setTimeout(done, 100));
      tally.add(
        'saved when the tab was hidden',
        (await savesAtHiding()) > 0 ? [] : ['no checkpoint within 10 s'],
        Date.now() - hiddenAt,
      );
    }
    const behind = await rate(secs);
    await page.front();
    await other.close();
    const after = await rate(long);
    const failure = await page.do('globalThis.failure');
    const fault = `tab hidden for ${secs} s`;
    const wrong =
      state === 'hidden' && failure === undefined ? [] : [`the page is ${state}, ${failure}`];
    // With other work the machine's own rate varies, so the rate is compared with the mean of before and after.
    const shown = (before + after) / 2;
    if (behind < least * shown)
      wrong.push(
        `${behind.toFixed(1)} steps a second, ${before.toFixed(1)} and ${after.toFixed(1)} when shown`,
      );
    tally.add(fault, wrong);
    tally.note(fault, `${((100 * behind) / shown).toFixed(0)} % of the visible rate`);
  } finally {
    await browser.end();
    await site.close();
  }
}
