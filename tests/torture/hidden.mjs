// A tab behind another: training goes on at the same rate.
import { Arena, TINY } from './arena.mjs';

export async function hidden(_, tally, { secs }) {
  // Of its own: Playwright's browsers are told to treat hidden pages as shown.
  const arena = await Arena.start({ throttled: true });
  try {
    const subject = await arena.subject();
    const devtools = await subject.page.context().newCDPSession(subject.page);
    await devtools.send('Emulation.setFocusEmulationEnabled', { enabled: false });
    await subject.do(async (s, setting) => {
      await s.create(setting);
      globalThis.running = s.run().catch((error) => (globalThis.failure = error.message));
    }, TINY);
    const rate = async (secs) => {
      const steps = () => subject.do((s) => s.current().completedSteps);
      const [from, started] = [await steps(), performance.now()];
      await new Promise((done) => setTimeout(done, secs * 1000));
      return ((await steps()) - from) / ((performance.now() - started) / 1000);
    };
    await rate(2);
    const shown = await rate(Math.min(secs / 2, 60));
    const front = await arena.browser.open('about:blank');
    await front.page.bringToFront();
    const state = await subject.do(() => document.visibilityState);
    const behind = await rate(secs);
    await front.page.close();
    await subject.page.bringToFront();
    const fault = `tab hidden for ${secs} s`;
    const wrong = state === 'hidden' ? [] : [`the page is ${state}`];
    // Of two periods of one kind on this machine the slower had more than nine tenths of the faster.
    if (behind < 0.9 * shown) wrong.push(`${behind.toFixed(1)} steps a second, ${shown.toFixed(1)} when shown`);
    tally.add(fault, wrong);
    tally.note(fault, `${((100 * behind) / shown).toFixed(0)} % of the visible rate`);
    await subject.close();
  } finally {
    await arena.end();
  }
}
