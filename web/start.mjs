// npm start: set up what is missing, build, and serve the demo. The address is printed when it is ready.
import { buildWasm } from './build-wasm.mjs';
import { setup } from './setup.mjs';
import { root } from './toolchain.mjs';

try {
  await setup({ tests: false });
  await buildWasm();
  const { createServer } = await import('vite');
  const server = await createServer({ configFile: `${root}/web/vite.config.ts` });
  await server.listen();
  console.log('\ntabtune: the demo is ready. Open it in a browser with WebGPU; add ?run to train at once.');
  server.printUrls();
} catch (error) {
  console.error(`start: ${error.message}`);
  process.exitCode = 1;
}
