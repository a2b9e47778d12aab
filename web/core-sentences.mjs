// The sentences of the core's errors and warnings, as a section of its module: only a worker with a core needs them, and they come and are kept with
// it. In the worker's script they would be a seventh of it.
import { transformSync } from 'esbuild';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { encoded, named } from './short-imports.mjs';
import { root } from './toolchain.mjs';

/** Where `npm run generate` writes them. */
const SOURCE = 'web/src/protocol/generated/worker-codes.ts';
/** Name of the section, by which web/src/worker/wasm.ts finds it. */
const SECTION = 'tabtune-sentences';
/** The kind of a section that is not compiled. */
const CUSTOM = 0;

/** Returns the sentences and the names of settings in them, as JSON. */
async function sentences() {
  const { code } = transformSync(readFileSync(join(root, SOURCE), 'utf8'), { loader: 'ts' });
  /** @type {typeof import('./src/protocol/generated/worker-codes.js')} */
  const { CORE_SENTENCES, SETTINGS } = await import(
    `data:text/javascript,${encodeURIComponent(code)}`
  );
  return JSON.stringify({ sentences: CORE_SENTENCES, settings: SETTINGS });
}

/** Returns a module with the sentences. @param {Uint8Array} wasm */
export async function withSentences(wasm) {
  const content = Buffer.from(await sentences());
  const name = named(SECTION);
  const head = [CUSTOM, ...encoded(name.length + content.length), ...name];
  return Buffer.concat([wasm, Uint8Array.from(head), content]);
}
