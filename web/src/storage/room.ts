/** Room on the disk, as the browser tells it. */
import { noRoom } from './faults.js';

/** Bytes that the browser's own estimate leaves, where it makes one. */
export async function freeBytes(): Promise<number | undefined> {
  const estimate = await globalThis.navigator?.storage?.estimate?.().catch(() => undefined);
  return estimate?.quota === undefined ? undefined : Math.max(0, estimate.quota - (estimate.usage ?? 0));
}

/** Before the first byte is written. `drop` gives up what may go, one by one, and says how many bytes that was. */
export async function makeRoom(need: number, drop: () => Promise<number | undefined>): Promise<void> {
  let free = await freeBytes();
  while (free !== undefined && need > free) {
    const dropped = await drop();
    if (dropped === undefined) throw noRoom(need, free);
    // The estimate may lag behind.
    free = Math.max(free + dropped, (await freeBytes()) ?? 0);
  }
}
