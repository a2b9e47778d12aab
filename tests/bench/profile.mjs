// node tests/bench/profile.mjs [tiny|small|medium] [STEPS]: time of each kernel in a step of tabtune in Chromium, by `trainer.profile`.
import { Browser } from '../browser/chromium.mjs';
import { serve } from '../browser/site.mjs';

const [size = 'tiny', steps = '3'] = process.argv.slice(2);
const site = await serve({ '/': '.' });
const browser = await Browser.launch();
try {
  const { page } = await browser.open(`${site.url}/tests/bench/tabtune.html`);
  await page.waitForFunction(() => globalThis.__bench !== undefined);
  const { stepMs } = await page.evaluate((ask) => globalThis.__bench(ask), {
    size,
    steps: Number(steps),
    specUrl: `${site.url}/tests/bench/spec.mjs`,
  });
  const { ms, dispatches, timing, kernels } = await page.evaluate(
    (count) => globalThis.__trainer.profile(count),
    Number(steps),
  );
  console.log(
    `${size}: step ${stepMs.toFixed(0)} ms, of its kernels ${ms.toFixed(0)} ms (${timing}), ${dispatches} dispatches`,
  );
  const rows = kernels.map(
    ({ kernel, launches, ms: taken, share }) =>
      `| ${kernel} | ${launches} | ${taken.toFixed(1)} | ${(100 * share).toFixed(1)} % |`,
  );
  console.log(
    ['| kernel | launches | ms per step | share |', '| --- | --- | --- | --- |', ...rows].join(
      '\n',
    ),
  );
} finally {
  await browser.close();
  await site.close();
}
