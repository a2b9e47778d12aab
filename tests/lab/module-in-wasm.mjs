// npm run lab -- module-in-wasm: compiles the example of crate/README.md, "Any Burn module", for a page (module-in-wasm/) and runs it in Chromium on
// SwiftShader: the module trains, is saved and resumed with equal bits. It runs once more with one bit of the saved weights changed, which the
// comparison must find.
import { join } from 'node:path';
import { setup, setupCompiler, setupStages } from '../../web/setup.mjs';
import { Stages, messageOf, script } from '../../web/stages.mjs';
import { cacheDir, environment, line, root, run } from '../../web/toolchain.mjs';
import { Browser, inModule } from '../browser/chromium.mjs';
import { serve } from '../browser/site.mjs';

const STAGE = 'compile the module';
const ADVICE = 'mend what the compiler says above and run this again: what was compiled is kept.';
const TARGET = 'wasm32-unknown-unknown';
const HANGING_MILLIS = 10 * 60 * 1000;
/** Text of the comparison, which its panic states. */
const DIFFERENCE = 'save(&whole).await? == save(&resumed).await?';
const folder = join(cacheDir, 'module-in-wasm');

/** Compiles the module as the quick core is compiled, and together with it, so that both share their dependencies. @param {(line: string) => void} onLine */
async function compile(onLine) {
  const options = ['--target', TARGET, '--config', 'web/quick.toml'];
  const packages = line`--package tabtune-module --package tabtune-web --features tabtune-web/replay`;
  await run(...line`cargo build --locked ${options} ${packages.flat()}`, { quiet: true, onLine });
  const wasm = join(environment.CARGO_TARGET_DIR, TARGET, 'debug', 'tabtune_module.wasm');
  const made = ['--target', 'web', '--out-dir', folder];
  await run(...line`wasm-bindgen ${made} --remove-name-section ${wasm}`, { quiet: true, onLine });
}

/** Runs the example in a page of its own; returns what it panicked or failed with. @param {import('playwright-core').Page} page @param {boolean} change */
const failureIn = (page, change) =>
  inModule(
    page,
    '/module/tabtune_module.js',
    async (module, { change, millis }) => {
      const { __wasm_call_ctors: construct } = await module.default();
      construct();
      return new Promise((ended) => {
        Object.assign(globalThis, { panicked: ended });
        setTimeout(() => ended(`nothing for ${millis} ms`), millis);
        module.run(change).then(
          () => ended(''),
          (error) => ended(error.message),
        );
      });
    },
    { change, millis: HANGING_MILLIS },
  );

process.chdir(root);
await script('module-in-wasm', async () => {
  await setupCompiler();
  const stages = new Stages([...setupStages('tests'), STAGE]);
  await setup('tests', stages);
  await stages.run(STAGE, ADVICE, compile);
  const site = await serve({ '/module/': folder });
  const browser = await Browser.launch();
  const counts = { passed: 0, failed: 0 };
  try {
    for (const change of [false, true]) {
      const { page } = await browser.open(`${site.url}/`);
      const failure = await failureIn(page, change).catch(messageOf);
      const good = change ? failure.includes(DIFFERENCE) : failure === '';
      counts[good ? 'passed' : 'failed']++;
      const name = change ? 'a changed bit is found' : 'trains, is saved and resumed bit for bit';
      console.log(`${name}: ${good ? 'ok' : `FAILED: ${failure || 'it passed'}`}`);
      await page.close();
    }
  } finally {
    await browser.close();
    await site.close();
  }
  console.log(`${counts.passed} passed, ${counts.failed} failed`);
  return counts.failed === 0 ? 0 : 1;
});
