/** Destinations of a download: memory, or one of the origin's private files, where it can be continued after a reload. */
import { fault, messageOf } from '../protocol/errors.js';
import { wait } from '../protocol/wait.js';
import { failed, nameOf } from './storage/faults.js';
import { freeBytes } from './storage/quota.js';

/** Number of bytes gathered before they become a Blob, which the browser can move to disk. */
const GATHERED_BYTES = 8 << 20;
/** Delays before each attempt to open a file: a worker that was ended keeps its files open for a moment. */
const OPENING_MILLIS = [0, 200, 1000];

export interface Store {
  /** Number of bytes that are there. */
  readonly bytes: number;
  /** Returns the last bytes, `count` at most. */
  tail(count: number): Uint8Array<ArrayBuffer>;
  /** Removes all bytes; `size` is the number of bytes that follow, if it is known. */
  restart(size: number | undefined): Promise<void>;
  append(bytes: Uint8Array<ArrayBuffer>): void;
  /** Returns the bytes that are there. */
  blob(): Promise<Blob>;
}

export class MemoryStore implements Store {
  #pieces: Blob[] = [];
  #gathered: Uint8Array<ArrayBuffer>[] = [];
  #gatheredBytes = 0;
  #last = new Uint8Array();
  bytes = 0;

  tail(count: number): Uint8Array<ArrayBuffer> {
    return this.#last.slice(-count);
  }

  async restart(): Promise<void> {
    this.#pieces = [];
    this.#gathered = [];
    this.#last = new Uint8Array();
    this.bytes = this.#gatheredBytes = 0;
  }

  append(bytes: Uint8Array<ArrayBuffer>): void {
    this.#gathered.push(bytes);
    this.#last = Uint8Array.of(...this.#last, ...bytes.subarray(-64)).slice(-64);
    this.#gatheredBytes += bytes.byteLength;
    this.bytes += bytes.byteLength;
    if (this.#gatheredBytes >= GATHERED_BYTES) this.#flush();
  }

  #flush(): void {
    this.#pieces.push(new Blob(this.#gathered));
    this.#gathered = [];
    this.#gatheredBytes = 0;
  }

  async blob(): Promise<Blob> {
    if (this.#gatheredBytes > 0) this.#flush();
    return new Blob(this.#pieces);
  }
}

/** Synchronous access to a file; available in dedicated workers, but not declared by the DOM library. */
interface AccessHandle {
  read(bytes: Uint8Array, options: { at: number }): number;
  write(bytes: Uint8Array, options: { at: number }): number;
  getSize(): number;
  truncate(size: number): void;
  flush(): void;
  close(): void;
}

/** A private file that is open for writing until `close`. */
export class FileStore implements Store {
  #bytes: number;

  private constructor(
    private readonly handle: FileSystemFileHandle,
    private readonly access: AccessHandle,
    private readonly subject: string,
    private size: number | undefined,
  ) {
    this.#bytes = access.getSize();
  }

  /** Opens a file whose download has `size` bytes; returns undefined if another worker writes to it, or the browser has no such files. */
  static async open(
    handle: FileSystemFileHandle,
    subject: string,
    size: number | undefined,
  ): Promise<FileStore | undefined> {
    const open: unknown = Reflect.get(handle, 'createSyncAccessHandle');
    if (typeof open !== 'function') return undefined;
    for (const millis of OPENING_MILLIS) {
      await wait(millis);
      try {
        return new FileStore(handle, (await open.call(handle)) as AccessHandle, subject, size);
      } catch {
        continue;
      }
    }
    return undefined;
  }

  get bytes(): number {
    return this.#bytes;
  }

  tail(count: number): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(Math.min(count, this.#bytes));
    this.access.read(bytes, { at: this.#bytes - bytes.byteLength });
    return bytes;
  }

  async restart(size: number | undefined): Promise<void> {
    this.access.truncate(0);
    this.#bytes = 0;
    this.size = size ?? this.size;
    await this.reserve();
  }

  /** Throws if there is no room for what is missing. */
  async reserve(): Promise<void> {
    const need = (this.size ?? 0) - this.#bytes;
    const free = await freeBytes();
    if (free !== undefined && need > free) throw noRoom(this.subject, need, free);
  }

  append(bytes: Uint8Array<ArrayBuffer>): void {
    let written = 0;
    try {
      written = this.access.write(bytes, { at: this.#bytes });
    } catch (thrown) {
      if (nameOf(thrown) !== 'QuotaExceededError') throw failed(messageOf(thrown), thrown);
    }
    if (written < bytes.byteLength)
      throw noRoom(this.subject, (this.size ?? bytes.byteLength) - this.#bytes, 0);
    this.#bytes += written;
  }

  async blob(): Promise<Blob> {
    return this.handle.getFile();
  }

  close(): void {
    this.access.flush();
    this.access.close();
  }
}

/** Returns the error of downloads that do not fit. */
export const noRoom = (subject: string, need: number, have: number): Error =>
  fault('download.room', { subject, expected: need, found: have }, { need, have });
