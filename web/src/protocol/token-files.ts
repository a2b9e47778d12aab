/** Files of the origin in which tokens of large data are while a run needs them. */

const FOLDER = 'tabtune-tokens';
/** Milliseconds after which a file is tried again: a worker that was ended keeps its files open for a moment. */
const AGAIN_MILLIS = [0, 200, 1000];

/** @internal The folder of these files; `undefined` where it is not there, unless it is to be made. */
export async function tokenFolder(create: boolean): Promise<FileSystemDirectoryHandle | undefined> {
  const origin = await globalThis.navigator?.storage?.getDirectory?.().catch(() => undefined);
  return origin?.getDirectoryHandle(FOLDER, { create }).catch(() => undefined);
}

/** @internal Removes the files that no worker has open. → whether some are left. */
export async function sweepTokens(): Promise<boolean> {
  const folder = await tokenFolder(false);
  if (folder === undefined) return false;
  const names: string[] = [];
  for await (const name of folder.keys()) names.push(name);
  const removed = await Promise.all(names.map((name) => folder.removeEntry(name).then(() => true, () => false)));
  return removed.includes(false);
}

/** @internal Removes the files of a worker that was ended. */
export async function dropTokens(): Promise<void> {
  for (const millis of AGAIN_MILLIS) {
    await new Promise((resolve) => setTimeout(resolve, millis));
    if (!(await sweepTokens().catch(() => false))) return;
  }
}
