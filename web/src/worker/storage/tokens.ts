/** Storage for tokens that are too many for memory: one of the origin's private files, which is removed with its run. */
import { sweepTokens, tokenFolder } from '../../protocol/token-files.js';
import { drop } from './sinks.js';

/** A file to which the core appends, and from which it reads. */
export interface TokenStorage {
  /** Appends bytes and returns their offset. */
  append(bytes: Uint8Array): number;
  read(offset: number, length: number): Uint8Array;
  /** Removes the file. */
  close(): Promise<void>;
}

interface AccessHandle {
  read(bytes: Uint8Array, options: { at: number }): number;
  write(bytes: Uint8Array, options: { at: number }): number;
  getSize(): number;
  truncate(size: number): void;
  close(): void;
}

/** Creates a new storage, after removing those of crashed tabs; returns undefined if the browser has no synchronous files. */
export async function tokenStorage(): Promise<TokenStorage | undefined> {
  await sweepTokens().catch(() => undefined);
  const folder = await tokenFolder(true);
  if (folder === undefined) return undefined;
  const name = `${crypto.randomUUID()}.tokens`;
  const access = await opened(folder, name).catch(() => undefined);
  if (access === undefined) return undefined;
  let end = 0;
  return {
    append(bytes) {
      if (access.write(bytes, { at: end }) !== bytes.byteLength)
        throw new DOMException('the browser has no room for the tokens of the data', 'QuotaExceededError');
      end += bytes.byteLength;
      return end - bytes.byteLength;
    },
    read(offset, length) {
      const bytes = new Uint8Array(length);
      return bytes.subarray(0, access.read(bytes, { at: offset }));
    },
    close() {
      access.close();
      return drop(folder, name).catch(() => undefined);
    },
  };
}

async function opened(folder: FileSystemDirectoryHandle, name: string): Promise<AccessHandle | undefined> {
  const handle = await folder.getFileHandle(name, { create: true });
  const open: unknown = Reflect.get(handle, 'createSyncAccessHandle');
  return typeof open === 'function' ? ((await open.call(handle)) as AccessHandle) : undefined;
}
