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
  const [address] = server.resolvedUrls.local;
  console.log(`\ntabtune: the demo is ready. Open ${address}?run in a browser with WebGPU: it trains its own model and text at once.`);
  console.log(`${address} without ?run waits for the Train button.`);
} catch (error) {
  console.error(`start: ${error.message}`);
  process.exitCode = 1;
}
