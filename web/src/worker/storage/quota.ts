/** Free space on the disk, as the browser reports it. */
import { answerTo } from '../../protocol/answers.js';
import { noRoom } from './faults.js';

/** Returns the free bytes according to the browser's estimate, if it gives one. */
export async function freeBytes(): Promise<number | undefined> {
  const estimate = await answerTo('room', () => globalThis.navigator?.storage?.estimate?.());
  return estimate?.quota === undefined
    ? undefined
    : Math.max(0, estimate.quota - (estimate.usage ?? 0));
}

/** Makes room before the first byte is written. `drop` removes one removable item and returns its number of bytes. */
export async function makeRoom(
  need: number,
  drop: () => Promise<number | undefined>,
): Promise<void> {
  let free = await freeBytes();
  while (free !== undefined && need > free) {
    const dropped = await drop();
    if (dropped === undefined) throw noRoom(need, free);
    // The estimate may lag behind.
    free = Math.max(free + dropped, (await freeBytes()) ?? 0);
  }
}
