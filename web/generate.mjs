// npm run generate: writes what repeats the Rust code, by `tabtune-dev generate`, and the declaration of the core, from that of wasm-bindgen.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildWasm } from './build-wasm.mjs';
import { FOLDERS } from './core-kind.mjs';
import { environment, programIn, root, run } from './toolchain.mjs';

export const DECLARATION = 'web/src/worker/generated/core.d.ts';

/**
 * Returns the declaration of the core for the worker, from that of the build in a folder: without the exports of the module itself, and with the start
 * function as `build-wasm.mjs` changes it.
 * @param {string} folder
 */
export function declaration(folder) {
  const text = readFileSync(join(root, folder, 'tabtune.d.ts'), 'utf8');
  const calls = text
    .slice(0, text.indexOf('export type InitInput'))
    .replace(/^\/\* .*\n/gm, '')
    .replace(/^ +\[Symbol\.dispose\].*\n/gm, '');
  return `// Made by npm run generate; not for editing.
/* eslint-disable */
/** The interface of the Rust core (\`web/core\`) for the worker. Reports are parsed in \`wasm.ts\`, so they are \`unknown\` here. */
${calls}/** Loads the core; \`fetched\` requests a file by its address, if the core is not given as a module or as bytes. */
export default function init(options: {
    module_or_path: WebAssembly.Module | BufferSource | URL | string | undefined;
    fetched: (address: URL | string) => Promise<Response>;
}): Promise<unknown>;
`.replace(/\n{3,}/g, '\n\n');
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await run('cargo', ['build', '--workspace', '--bins', '--locked']);
  await run(programIn(environment.CARGO_TARGET_DIR, 'tabtune-dev'), ['generate', root]);
  await buildWasm('quick');
  writeFileSync(join(root, DECLARATION), declaration(FOLDERS.quick.core));
}
