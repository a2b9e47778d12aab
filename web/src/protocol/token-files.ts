/** Files in the origin's private file system that hold the tokens of large data while a run needs them. */

import { privateFiles } from './answers.js';
import { wait } from './wait.js';

const FOLDER = 'tabtune-tokens';
/** Delays in milliseconds before each attempt to remove files: a worker that was ended keeps its files open for a moment. */
const AGAIN_MILLIS = [0, 200, 1000];

/** @internal Returns the folder of these files; `undefined` if it does not exist, unless it is to be created. */
export async function tokenFolder(create: boolean): Promise<FileSystemDirectoryHandle | undefined> {
  return (await privateFiles())?.getDirectoryHandle(FOLDER, { create }).catch(() => undefined);
}

/** @internal Removes the files that no worker has open. Returns whether some remain. */
export async function sweepTokens(): Promise<boolean> {
  const folder = await tokenFolder(false);
  if (folder === undefined) return false;
  const names: string[] = [];
  for await (const name of folder.keys()) names.push(name);
  const removed = await Promise.all(
    names.map((name) =>
      folder.removeEntry(name).then(
        () => true,
        () => false,
      ),
    ),
  );
  return removed.includes(false);
}

/** @internal Removes the files of a worker that was ended. */
export async function dropTokens(): Promise<void> {
  for (const millis of AGAIN_MILLIS) {
    await wait(millis);
    if (!(await sweepTokens().catch(() => false))) return;
  }
}
