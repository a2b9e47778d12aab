/** Storage for many tokens: one of the origin's private files, which is removed with its run, and memory for what the file has no room for. */
import { fault } from '../../protocol/errors.js';
import type { TabtuneError } from '../../protocol/errors.js';
import { sweepTokens, tokenFolder } from '../../protocol/token-files.js';
import { nameOf } from './faults.js';
import { drop } from './sinks.js';

/** A file to which the core appends, and from which it reads. */
export interface TokenStorage {
  /** Appends bytes and returns their offset. */
  append(bytes: Uint8Array): number;
  read(offset: number, length: number): Uint8Array;
  /** Removes the file. Throws `data.room` if an append found no room, because the core does not pass on its error. */
  close(): Promise<void>;
}

interface AccessHandle {
  read(bytes: Uint8Array, options: { at: number }): number;
  write(bytes: Uint8Array, options: { at: number }): number;
  getSize(): number;
  truncate(size: number): void;
  close(): void;
}

/**
 * Creates a new storage, after removing those of crashed tabs; returns undefined if the browser has no synchronous files. The tokens need at most `need`
 * bytes, and memory takes `memory` bytes of them.
 */
export async function tokenStorage(
  need: number,
  memory: number,
): Promise<TokenStorage | undefined> {
  await sweepTokens().catch(() => undefined);
  const folder = await tokenFolder(true);
  if (folder === undefined) return undefined;
  const name = `${crypto.randomUUID()}.tokens`;
  const access = await opened(folder, name).catch(() => undefined);
  if (access === undefined) return undefined;
  let stored = 0;
  let end = 0;
  /** Pieces that follow those in the file. */
  const inMemory: { at: number; bytes: Uint8Array }[] = [];
  let full: TabtuneError | undefined;
  const isStored = (bytes: Uint8Array): boolean => {
    if (inMemory.length > 0) return false;
    try {
      return access.write(bytes, { at: end }) === bytes.byteLength;
    } catch (thrown) {
      if (nameOf(thrown) === 'QuotaExceededError') return false;
      throw thrown;
    }
  };
  return {
    append(bytes) {
      const at = end;
      if (isStored(bytes)) stored += bytes.byteLength;
      else if (at + bytes.byteLength - stored <= memory)
        inMemory.push({ at, bytes: bytes.slice() });
      else
        throw (full = fault(
          'data.room',
          { expected: need, found: stored },
          { need, have: stored },
        ));
      end += bytes.byteLength;
      return at;
    },
    read(offset, length) {
      const bytes = new Uint8Array(Math.min(length, end - offset));
      const inFile = bytes.subarray(0, Math.max(0, stored - offset));
      const found = inFile.byteLength > 0 ? access.read(inFile, { at: offset }) : 0;
      // The core refuses fewer bytes than it asked for.
      if (found < inFile.byteLength) return bytes.subarray(0, found);
      for (const piece of inMemory) {
        const from = Math.max(0, offset - piece.at);
        const part = piece.bytes.subarray(
          from,
          Math.max(from, offset + bytes.byteLength - piece.at),
        );
        if (part.byteLength > 0) bytes.set(part, piece.at + from - offset);
      }
      return bytes;
    },
    async close() {
      access.close();
      await drop(folder, name).catch(() => undefined);
      if (full) throw full;
    },
  };
}

async function opened(
  folder: FileSystemDirectoryHandle,
  name: string,
): Promise<AccessHandle | undefined> {
  const handle = await folder.getFileHandle(name, { create: true });
  const open: unknown = Reflect.get(handle, 'createSyncAccessHandle');
  return typeof open === 'function' ? ((await open.call(handle)) as AccessHandle) : undefined;
}
