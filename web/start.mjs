// npm start: sets up missing prerequisites, builds quickly, and serves the demo. The address is printed when it is ready. A core that exists for
// these sources, in a package (`TABTUNE_PACKAGE`) or from another checkout, is served without compiling anything; Rust is then not needed.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { STAGES, buildWasm, coreIsThere } from './build-wasm.mjs';
import { FOLDERS } from './core-kind.mjs';
import { setup, setupCompiler, setupNode, setupStages } from './setup.mjs';
import { StageError, Stages } from './stages.mjs';
import { root } from './toolchain.mjs';

/** Serves the demo with this build of the core; resolves with the address. */
async function serve(kind) {
  const { createServer } = await import('vite');
  const core = join(root, FOLDERS[kind].core);
  const { sha256 } = JSON.parse(readFileSync(join(core, 'build.json'), 'utf8'));
  const server = await createServer({
    configFile: join(root, 'web', 'vite.config.ts'),
    define: { __TABTUNE_WASM_HASH__: JSON.stringify(sha256) },
    resolve: { alias: [{ find: 'tabtune-wasm', replacement: join(core, 'tabtune.js') }] },
  });
  await server.listen();
  return server.resolvedUrls?.local[0];
}

try {
  await setupNode();
  const kind = coreIsThere('release') && !coreIsThere('quick') ? 'release' : 'quick';
  const purpose = coreIsThere(kind) ? 'page' : 'build';
  const stages = new Stages([...setupStages(purpose), STAGES[kind], 'demo server']);
  if (purpose === 'build') await setupCompiler();
  const tools = setup(purpose, stages);
  const made = await Promise.allSettled([tools, buildWasm(kind, stages, tools)]);
  for (const each of made) if (each.status === 'rejected') throw each.reason;
  const advice = 'the page is made of web/demo and web/src: mend what the message names, and run this again.';
  const address = await stages.run('demo server', { advice }, () => serve(kind));
  console.log(`\ntabtune: the demo is ready. Open ${address}?run in a browser with WebGPU: it trains its own model and text at once.`);
  const built = kind === 'quick' ? 'This is the quick build; npm run build makes the small one.' : 'This is the released core.';
  console.log(`${address} without ?run waits for the Train button. ${built}`);
} catch (error) {
  if (!(error instanceof StageError)) console.error(`start: ${error.message}`);
  process.exitCode = 1;
}
