/** Features of a worker that Node lacks: IndexedDB, an estimate of free space, and Blobs that can be read synchronously. */
import { IDBFactory } from 'fake-indexeddb';

import { MemoryBlob, MemoryFile, NodeBytes, PlatformBlob } from '../node/memory-blobs.js';

export {
  IDBCursor,
  IDBCursorWithValue,
  IDBDatabase,
  IDBIndex,
  IDBKeyRange,
  IDBObjectStore,
  IDBRequest,
  IDBTransaction,
} from 'fake-indexeddb';

export {
  MemoryBlob as Blob,
  MemoryFile as File,
  MemoryReader as FileReaderSync,
  NodeBuffer as ArrayBuffer,
  NodeBytes as Uint8Array,
} from '../node/memory-blobs.js';

export const isInMemory = (blob: Blob): boolean => blob instanceof MemoryBlob;

/** Reads a Blob where Blobs lack a method for that, as in jsdom. */
function read(this: Blob): Promise<ArrayBuffer> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as ArrayBuffer);
    reader.onerror = () => reject(reader.error ?? new Error('a Blob could not be read'));
    reader.readAsArrayBuffer(this);
  });
}

/** Gives Blobs the methods that the page uses, where the platform has Blobs without them. */
export function completeBlobs(): void {
  const { prototype } = PlatformBlob;
  if (typeof prototype.arrayBuffer === 'function') return;
  const text = async function (this: Blob): Promise<string> {
    return new TextDecoder().decode(await read.call(this));
  };
  Object.assign(prototype, { arrayBuffer: read, text });
}

/** Returns a Blob or a File with the same bytes that a worker can read synchronously. */
export async function inMemory(blob: Blob): Promise<Blob> {
  const { type } = blob;
  const bytes = new NodeBytes(await blob.arrayBuffer());
  const { name, lastModified } = blob as Partial<File>;
  return name === undefined
    ? new MemoryBlob([bytes], { type })
    : new MemoryFile([bytes], name, {
        type,
        ...(lastModified === undefined ? {} : { lastModified }),
      });
}

let databases = new IDBFactory();
/** The databases of the origin, whichever they are at the moment. */
export const indexedDB: Pick<IDBFactory, 'open' | 'deleteDatabase' | 'databases'> = {
  open: (name, version) => databases.open(name, version),
  deleteDatabase: (name) => databases.deleteDatabase(name),
  databases: () => databases.databases(),
};

/** Bytes that can still be stored; no estimate if it is undefined. */
export const room: { bytes: number | undefined } = { bytes: undefined };

/** The worker's navigator: without private files and locks, which a worker can do without. */
export const navigator = {
  storage: {
    estimate: async (): Promise<StorageEstimate> =>
      room.bytes === undefined ? {} : { quota: room.bytes, usage: 0 },
  },
};
/** Sums of buffers that are of another realm for Node, as those of jsdom are. */
export const crypto = {
  subtle: {
    digest: (algorithm: string, bytes: ArrayBuffer): Promise<ArrayBuffer> =>
      globalThis.crypto.subtle.digest(algorithm, structuredClone(bytes)),
  },
  randomUUID: (): string => globalThis.crypto.randomUUID(),
};
/** A worker in the page's process has no address. */
export const location = undefined;

/** Forgets all that was stored. */
export function emptyStorage(): void {
  databases = new IDBFactory();
  room.bytes = undefined;
}
