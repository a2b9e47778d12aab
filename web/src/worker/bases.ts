/**
 * Keeps the base files of an adapter with its run, or remembers where they can be opened again, so that a resume in another page finds them without
 * asking.
 */
import { escaped } from '../protocol/errors.js';
import type { BaseFile } from '../protocol/base-files.js';
import type { NeededFile } from '../protocol/reports.js';
import { inPieces } from './sources.js';
import type { CheckpointStore } from './storage/checkpoints.js';
import type { JsSource } from './wasm.js';

/**
 * Records the files of a run. A file with an address is opened from there again, unless its request has headers of its own, which may be secret. The
 * smallest of the others are stored, up to `room` bytes together: a handle needs a permission, which another page often lacks. Returns the files that
 * a resume has to be given again.
 */
export async function keepBase(
  store: CheckpointStore,
  run: string,
  files: readonly JsSource[],
  room: number,
): Promise<BaseFile[]> {
  const base = files.map(({ name, size, origin: from }): BaseFile => ({ name, bytes: size, from }));
  let left = room;
  for (const file of [...base].sort((a, b) => a.bytes - b.bytes)) {
    if (typeof file.from === 'string' || file.bytes > left) continue;
    left -= file.bytes;
    file.stored = true;
  }
  const next = inPieces(files.filter((_, at) => base[at]?.stored));
  await store.keepBase(run, base, left < room ? { bytes: room - left, next } : undefined);
  return base.filter(({ from, stored }) => from === undefined && !stored);
}

/** Returns the names of files with their sizes. */
export const listOfFiles = (files: readonly NeededFile[]): string =>
  escaped(files.map(({ name, bytes }) => `${name} of ${bytes} bytes`).join(', '));
