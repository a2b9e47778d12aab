// Exports of the native program: its arguments, and the checksums of the files that it writes.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../../web/toolchain.mjs';

const GOLDEN = join(root, 'tests', 'golden');

/**
 * Options of an export, under the names of both sides.
 * @typedef {{ license?: string, baseModel?: string, data?: string, text?: string }} Card
 * @typedef {{ type?: string, dtype?: string, encoding?: string, shardBytes?: number, manifest?: boolean, base?: string[], card?: Card }} Options
 * @typedef {{ files?: [string, number, string][], refused?: string }} Found
 */

/**
 * Returns the arguments for the native program.
 * @param {{ model?: string, adapter?: string }} subject @param {Options & { format?: string }} options @param {string} to
 */
export function args(
  { model, adapter },
  { format = 'safetensors', type, dtype, encoding, shardBytes, manifest, base = [], card = {} },
  to,
) {
  const pairs = {
    type,
    dtype,
    encoding,
    'shard-bytes': shardBytes,
    license: card.license,
    'base-model': card.baseModel,
    'data-note': card.data,
    note: card.text,
    'merge-adapter': adapter,
  };
  const given = Object.entries(pairs).flatMap(([key, value]) =>
    value === undefined ? [] : [`--${key}`, String(value)],
  );
  const files = base.map((name) => join(GOLDEN, 'models', name));
  return [
    'convert',
    '--json',
    '--model',
    model,
    '--to',
    to,
    '--format',
    format,
    '--name',
    'm',
    ...(files.length > 0 ? ['--base', ...files] : []),
    ...(manifest ? ['--manifest'] : []),
    ...given,
  ];
}

/**
 * Returns name, size and SHA-256 of each file that the native program writes; a receipt next to a file gets the name that it has in the browser.
 * @returns {Promise<Found>}
 */
export async function natively(binary, to, given) {
  try {
    await promisify(execFile)(binary, given);
  } catch (/** @type {any} */ { stdout, stderr }) {
    return { refused: JSON.parse((stdout || stderr).trim().split('\n').at(-1)).error.code };
  }
  const paths = statSync(to).isDirectory()
    ? readdirSync(to).map((name) => join(to, name))
    : [to, `${to}.receipt.json`];
  const files = paths.map((path) => {
    const bytes = readFileSync(path);
    const name = basename(path).endsWith('.receipt.json') ? 'tabtune.receipt.json' : basename(path);
    return /** @type {[string, number, string]} */ ([
      name,
      bytes.length,
      createHash('sha256').update(bytes).digest('hex'),
    ]);
  });
  return { files };
}

/** Returns the files in the order of their names, or the code of the refusal. @param {Found} found */
export const sorted = ({ files, refused }) =>
  files ? files.sort(([a], [b]) => (a < b ? -1 : 1)) : refused;
