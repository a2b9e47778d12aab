/** Features of an origin that Node lacks: Web Locks, a private file system, an estimate of free space. */
import { afterEach, beforeEach, vi } from 'vitest';

type Content = Uint8Array<ArrayBuffer>;
const missing = (name: string): DOMException =>
  new DOMException(`${name} is not there`, 'NotFoundError');

/** A file of the stand-in; one synchronous access at a time, as in browsers. */
export class StoredFile {
  readonly kind = 'file';
  content: Content = new Uint8Array();
  lastModified = Date.now();
  #open = false;
  constructor(
    readonly name: string,
    private readonly origin: Origin,
  ) {}
  async getFile(): Promise<File> {
    return Object.assign(new File([this.content.slice()], this.name), {
      lastModified: this.lastModified,
    });
  }
  #write(bytes: ArrayBuffer, at: number): number {
    this.origin.onWrite(this.name, bytes.byteLength);
    const grown = new Uint8Array(Math.max(this.content.byteLength, at + bytes.byteLength));
    grown.set(this.content);
    grown.set(new Uint8Array(bytes), at);
    this.content = grown;
    this.lastModified = Date.now();
    return bytes.byteLength;
  }
  async createSyncAccessHandle(): Promise<unknown> {
    if (this.#open) throw new DOMException('the file is open', 'NoModificationAllowedError');
    this.#open = true;
    return {
      getSize: () => this.content.byteLength,
      truncate: (size: number) => (this.content = this.content.slice(0, size)),
      write: (bytes: ArrayBuffer, { at }: { at: number }) => this.#write(bytes, at),
      read: (into: Uint8Array, { at }: { at: number }) => {
        const found = this.content.subarray(at, at + into.byteLength);
        into.set(found);
        return found.byteLength;
      },
      flush: () => this.origin.flushed.push(this.name),
      close: () => (this.#open = false),
    };
  }
  async createWritable(): Promise<unknown> {
    const pieces: ArrayBuffer[] = [];
    return {
      write: async (bytes: ArrayBuffer) => pieces.push(bytes),
      abort: async () => undefined,
      close: async () => {
        this.content = new Uint8Array();
        for (const piece of pieces) this.#write(piece, this.content.byteLength);
        this.origin.flushed.push(this.name);
      },
    };
  }
}

export class StoredFolder {
  readonly kind = 'directory';
  readonly entries = new Map<string, StoredFile | StoredFolder>();
  constructor(
    readonly name: string,
    private readonly origin: Origin,
  ) {}
  #checked(name: string): void {
    if (name === '' || name === '.' || name === '..' || /[/\\]/.test(name))
      throw new TypeError(`${name} is no name`);
  }
  async getDirectoryHandle(name: string, { create = false } = {}): Promise<StoredFolder> {
    this.#checked(name);
    const found = this.entries.get(name);
    if (found instanceof StoredFolder) return found;
    if (found !== undefined || !create) throw missing(name);
    const made = new StoredFolder(name, this.origin);
    this.entries.set(name, made);
    return made;
  }
  async getFileHandle(name: string, { create = false } = {}): Promise<StoredFile> {
    this.#checked(name);
    const found = this.entries.get(name);
    if (found instanceof StoredFile) return found;
    if (found !== undefined || !create) throw missing(name);
    const made = new StoredFile(name, this.origin);
    this.entries.set(name, made);
    return made;
  }
  async removeEntry(name: string): Promise<void> {
    if (!this.entries.delete(name)) throw missing(name);
  }
  async *keys(): AsyncGenerator<string> {
    yield* [...this.entries.keys()];
  }
  /** Returns a folder or file further down, for tests. */
  at(...path: string[]): StoredFile | StoredFolder | undefined {
    const [name = '', ...rest] = path;
    const found = this.entries.get(name);
    return rest.length > 0 && found instanceof StoredFolder ? found.at(...rest) : found;
  }
}

/** Locks, files and space of one origin. */
export class Origin {
  readonly files = new StoredFolder('', this);
  readonly held = new Set<string>();
  /** Names of files in the order in which they were flushed. */
  readonly flushed: string[] = [];
  quota: number | undefined;
  usage = 0;
  /** Called before a write; may throw, as a full disk does. */
  onWrite: (name: string, bytes: number) => void = () => undefined;

  /** Requests a lock; every lock is exclusive here. */
  async request(
    name: string,
    options: LockOptions,
    work: (lock: unknown) => unknown,
  ): Promise<unknown> {
    if (options.ifAvailable === true && this.held.has(name)) return work(null);
    while (this.held.has(name)) await new Promise((done) => setTimeout(done, 1));
    this.held.add(name);
    try {
      return await work({ name });
    } finally {
      this.held.delete(name);
    }
  }

  get navigator(): unknown {
    const estimate = async (): Promise<unknown> => ({ quota: this.quota, usage: this.usage });
    return {
      locks: { request: this.request.bind(this) },
      storage: { estimate, getDirectory: async () => this.files },
    };
  }
}

/** Creates a new origin for each test of the file. */
export function freshOrigin(): { readonly now: Origin } {
  const held = { now: new Origin() };
  beforeEach(() => {
    held.now = new Origin();
    vi.stubGlobal('navigator', held.now.navigator);
  });
  afterEach(() => {
    vi.unstubAllGlobals();
  });
  return held;
}
