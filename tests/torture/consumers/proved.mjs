// The checksums of the small files that other programs have read: ../../golden/proved.json.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../../web/toolchain.mjs';

const FILE = join(root, 'tests', 'golden', 'proved.json');

export const sum = (path) => createHash('sha256').update(readFileSync(path)).digest('hex');

/** Returns the committed list: `models`, the converted inputs, and `files`, the results, each name → SHA-256. */
export const proved = () => JSON.parse(readFileSync(FILE, 'utf8'));

/** Writes the list. Names are sorted, so that equal files give an equal list. */
export function prove(models, files) {
  const sorted = (sums) =>
    Object.fromEntries(Object.entries(sums).sort(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(
    FILE,
    `${JSON.stringify({ models: sorted(models), files: sorted(files) }, null, 2)}\n`,
  );
}
