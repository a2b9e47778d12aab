// npm start: sets up missing prerequisites, builds quickly, and serves the demo. The address is printed when it is ready. A core that exists for
// these sources, in a package (`TABTUNE_PACKAGE`) or from another checkout, is served without compiling anything; Rust is then not needed.
import { join } from 'node:path';
import { STAGES, buildWasm, coreIsThere } from './build-wasm.mjs';
import { setup, setupCompiler, setupNode, setupStages } from './setup.mjs';
import { Stages, script } from './stages.mjs';
import { root } from './toolchain.mjs';

/** Serves the demo; resolves with the address. */
async function serve() {
  const { createServer } = await import('vite');
  const server = await createServer({ configFile: join(root, 'web', 'vite.config.ts') });
  await server.listen();
  return server.resolvedUrls?.local[0];
}

await script('start', async () => {
  setupNode();
  const kind = coreIsThere('release') && !coreIsThere('quick') ? 'release' : 'quick';
  const purpose = coreIsThere(kind) ? 'page' : 'build';
  const stages = new Stages([...setupStages(purpose), STAGES[kind], 'demo server']);
  if (purpose === 'build') await setupCompiler();
  const tools = setup(purpose, stages);
  for (const made of await Promise.allSettled([tools, buildWasm(kind, stages, tools)]))
    if (made.status === 'rejected') throw made.reason;
  // The configuration of the demo reads which core it is made of.
  process.env.TABTUNE_CORE = kind;
  const advice =
    'the page is made of web/demo and web/src: mend what the message names, and run this again.';
  const address = await stages.run('demo server', advice, serve);
  console.log(
    `\ntabtune: the demo is ready. Open ${address}?run in a browser with WebGPU: it trains its own model and text at once.`,
  );
  const built =
    kind === 'quick'
      ? 'This is the quick build; npm run build makes the small one.'
      : 'This is the released core.';
  console.log(`${address} without ?run waits for the Train button. ${built}`);
});
