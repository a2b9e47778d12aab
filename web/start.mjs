// npm start: set up what is missing, build quickly, and serve the demo. The address is printed when it is ready.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { STAGES, buildWasm } from './build-wasm.mjs';
import { setup, setupCompiler, setupStages } from './setup.mjs';
import { StageError, Stages } from './stages.mjs';
import { root } from './toolchain.mjs';

/** Serves the demo with the quick build in the place of the release; resolves with the address. */
async function serve() {
  const { createServer } = await import('vite');
  const { sha256 } = JSON.parse(readFileSync(join(root, 'web', 'pkg-quick', 'build.json'), 'utf8'));
  const server = await createServer({
    configFile: join(root, 'web', 'vite.config.ts'),
    define: { __TABTUNE_WASM_HASH__: JSON.stringify(sha256) },
    resolve: { alias: [{ find: 'tabtune-wasm', replacement: join(root, 'web', 'pkg-quick', 'tabtune.js') }] },
  });
  await server.listen();
  return server.resolvedUrls.local[0];
}

try {
  const stages = new Stages([...setupStages('build'), STAGES.quick, 'demo server']);
  await setupCompiler();
  const tools = setup('build', stages);
  const made = await Promise.allSettled([tools, buildWasm('quick', stages, tools)]);
  for (const { reason } of made) if (reason) throw reason;
  const advice = 'the page is made of web/demo and web/src: mend what the message names, and run this again.';
  const address = await stages.run('demo server', { advice }, serve);
  console.log(`\ntabtune: the demo is ready. Open ${address}?run in a browser with WebGPU: it trains its own model and text at once.`);
  console.log(`${address} without ?run waits for the Train button. This is the quick build; npm run build makes the small one.`);
} catch (error) {
  if (!(error instanceof StageError)) console.error(`start: ${error.message}`);
  process.exitCode = 1;
}
