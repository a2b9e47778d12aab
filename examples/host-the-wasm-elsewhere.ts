// Loads the worker and the WebAssembly from another place than the page's script: a CDN, or a folder
// with a version in its name that browsers may keep for ever. Copy `worker.js`, `parquet.js` and
// `tabtune_bg.wasm` there from `node_modules/tabtune/dist`, of the version that the page bundles.
import { openModel, openSavedRuns, Trainer } from 'tabtune';
import type { FilesInput, Model, WorkerOptions } from 'tabtune';

/**
 * Addresses of the files in a folder, such as `https://cdn.example/tabtune-0.1.0/`.
 *
 * From another origin, its server must send `Access-Control-Allow-Origin`, and this page's policy, if
 * it has one, needs `worker-src blob: https://cdn.example` and the CDN in `script-src` and
 * `connect-src`. Under COEP the files also need `Cross-Origin-Resource-Policy: cross-origin`.
 */
export const assetsIn = (folder: string): WorkerOptions => ({
  workerUrl: new URL('worker.js', folder),
  wasmUrl: new URL('tabtune_bg.wasm', folder),
});

/** Every call that starts a worker takes the addresses; a trainer uses the worker of its model. */
export const open = (files: FilesInput, assets: WorkerOptions): Promise<Model> =>
  openModel(files, assets);

/** Continues the newest saved run. */
export async function resumeNewest(assets: WorkerOptions): Promise<Trainer | undefined> {
  using runs = await openSavedRuns(assets);
  const [newest] = await runs.list();
  return newest && (await Trainer.resume({ run: newest.run, ...assets }));
}
