// wasm-pack, which makes the released core: the one of the PATH if it has this version, otherwise one that is compiled for this machine once.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDir, read, run, toolsDir } from './toolchain.mjs';

const VERSION = '0.15.1';

const versionFound = async () => (await read('wasm-pack', ['--version']))?.split(/\s+/)[1];

/** Compiles wasm-pack into the cache, unless it is there. It only calls cargo and wasm-bindgen, so nothing in it is optimized. */
export async function installWasmPack(onLine) {
  if ((await versionFound()) === VERSION) return;
  mkdirSync(toolsDir, { recursive: true });
  const args = ['install', 'wasm-pack', '--version', VERSION, '--locked', '--root', toolsDir, '--force', '--debug'];
  await run('cargo', args, {
    quiet: true,
    onLine,
    env: { CARGO_TARGET_DIR: join(cacheDir, 'tools-target'), CARGO_PROFILE_DEV_DEBUG: '0' },
  });
  const found = await versionFound();
  if (found !== VERSION) throw new Error(`wasm-pack: expected version ${VERSION}, found ${found ?? 'none'}`);
}
