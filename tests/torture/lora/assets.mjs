// The fixed models and texts, which are not in the repository: TABTUNE_ASSETS names their folder.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../../web/toolchain.mjs';

const ASSETS = process.env.TABTUNE_ASSETS ?? join(root, 'target', 'assets');

/** Returns the path of one of them, which must exist. */
export function asset(...parts) {
  const path = join(ASSETS, ...parts);
  if (!existsSync(path))
    throw new Error(
      `${path}: missing; TABTUNE_ASSETS names the folder of the fixed models and texts`,
    );
  return path;
}
