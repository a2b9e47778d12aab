/**
 * A file behind an address whose beginning is loaded first, and the rest when all of it is needed. Its bytes are kept in the origin's private file
 * system, so that a download that broke off is continued, and a whole file is not downloaded again.
 */
import { escaped, fault, finding, TabtuneError } from '../protocol/errors.js';
import type { Finding, OnProgress } from '../protocol/reports.js';
import { Download } from './download.js';
import type { Known } from './download.js';
import { FileStore, MemoryStore } from './download-stores.js';
import type { Store } from './download-stores.js';
import { pageWarning } from './http-headers.js';
import type { UrlSpec } from './http-request.js';
import { blobSource } from './blob-source.js';
import { RunningSha256 } from './running-sha256.js';
import { aborting } from './whole-download.js';
import { quoted } from './storage/faults.js';
import { dropDownload, writeRecord } from './storage/kept-downloads.js';
import type { JsSource } from './wasm.js';

/** Number of bytes that are loaded first. */
export const BEGINNING_BYTES = 1 << 20;
const HASHED_BYTES = 8 << 20;

/** Returns the name under which a download is listed. */
export const downloadName = ({ hub, name, url }: UrlSpec): string =>
  hub ? `hf:${hub.repo}@${hub.commit}/${name}` : url;

/** Returns the address from which the worker can open a file again without asking: with its sum, by which a kept file is found. */
export const originOf = ({ url, sum, parts }: UrlSpec): string | undefined =>
  sum === undefined ? (parts ? undefined : url) : `${url.replace(/#.*/, '')}#sum=${sum}`;

/** Returns the id of bytes as a blob of git. */
async function gitId(blob: Blob): Promise<string> {
  const bytes = await new Blob([`blob ${blob.size}\0`, blob]).arrayBuffer();
  const id = new Uint8Array(await crypto.subtle.digest('SHA-1', bytes));
  return Array.from(id, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** A part of the file that is kept. */
export interface Kept {
  handle: FileSystemFileHandle;
  /** The bytes that are there already. */
  part: Blob | undefined;
}

export class RemoteSource implements JsSource {
  readonly name: string;
  readonly origin: string | undefined;
  size = 0;
  warning: Finding | undefined;
  pieces?: string[];
  /** End of a read whose bytes are not loaded yet. */
  wanted: number | undefined;
  #inner: JsSource;
  #blob: Blob = new Blob([]);
  #memory: MemoryStore | undefined;
  #isWhole = false;

  constructor(
    readonly spec: UrlSpec,
    private kept: Kept | undefined,
    private known: Partial<Known>,
  ) {
    this.name = spec.name;
    this.origin = originOf(spec);
    this.#inner = this.#hold(kept?.part ?? new Blob([]));
  }

  #hold(blob: Blob): JsSource {
    this.#blob = blob;
    this.size = this.known.size ?? this.spec.size ?? blob.size;
    return (this.#inner = blobSource(this.name, blob));
  }

  /** An arrow function, because the core calls it without its object. */
  read = (offset: number, length: number): Uint8Array => {
    const end = offset + length;
    if (this.#isWhole || end > this.size) return this.#inner.read(offset, length);
    try {
      if (end <= this.#blob.size) return this.#inner.read(offset, length);
    } catch {
      // Another tab has continued the file in the meantime.
      this.#hold(new Blob([]));
    }
    this.wanted = Math.max(this.wanted ?? 0, end);
    throw fault('source.read', { subject: quoted(this.name), found: 'it is not loaded yet' });
  };

  ahead = (): Promise<void> | undefined => this.#inner.ahead?.();

  /** Loads the beginning of the file up to `until`, at least. */
  async begin(
    until: number,
    signal: AbortSignal,
    onProgress: OnProgress,
    begun?: Response,
  ): Promise<void> {
    this.wanted = undefined;
    if (until <= this.#blob.size) return;
    const wanted = Math.max(until, BEGINNING_BYTES, 2 * this.#blob.size);
    const size = this.known.size ?? this.spec.size ?? Infinity;
    await this.#load(wanted < size ? wanted : Infinity, signal, onProgress, begun);
  }

  /** Loads all of it, and compares its sum with the one that is known. */
  async complete(signal: AbortSignal, onProgress: OnProgress): Promise<void> {
    if (!this.#isWhole) await this.#load(Infinity, signal, onProgress);
  }

  async #load(
    until: number,
    signal: AbortSignal,
    onProgress: OnProgress,
    begun?: Response,
  ): Promise<void> {
    let sum = new RunningSha256();
    if (until === Infinity)
      for (let at = 0; at < this.#blob.size; at += HASHED_BYTES)
        sum.update(new Uint8Array(await this.#blob.slice(at, at + HASHED_BYTES).arrayBuffer()));
    const name = downloadName(this.spec);
    const file = await this.#opened(name);
    const inner: FileStore | MemoryStore = file ?? (this.#memory ??= new MemoryStore());
    const store: Store = {
      get bytes() {
        return inner.bytes;
      },
      tail: (count) => inner.tail(count),
      restart: async (size) => {
        sum = new RunningSha256();
        await inner.restart(size);
        if (file) await this.#record(name, work.known, false);
      },
      append: (bytes) => {
        if (until === Infinity) sum.update(bytes);
        inner.append(bytes);
      },
      blob: () => inner.blob(),
    };
    try {
      // Bytes without a record are of no use.
      if (inner.bytes === this.#blob.size) await file?.reserve();
      else await inner.restart(this.known.size);
    } catch (thrown) {
      file?.close();
      throw thrown;
    }
    const work: Download = new Download(this.spec, signal, onProgress, store, this.known);
    try {
      await aborting(signal, () => work.load(until, begun));
    } catch (thrown) {
      file?.close();
      this.known = work.known;
      this.#hold(await inner.blob());
      if (isChanged(thrown)) await this.#drop(name);
      throw thrown;
    }
    file?.close();
    this.known = work.known;
    this.warning ??= pageWarning(this.name, work.type);
    this.#hold(await inner.blob());
    if (this.#blob.size < this.size) return;
    this.size = this.#blob.size;
    // All of it came with its beginning.
    if (until !== Infinity) return this.#load(Infinity, signal, onProgress);
    await this.#check(name, sum.hex(), file !== undefined);
  }

  /** Opens the kept file; without it, the bytes stay in memory. */
  async #opened(name: string): Promise<FileStore | undefined> {
    if (!this.kept) return undefined;
    const file = await FileStore.open(this.kept.handle, escaped(name), this.known.size);
    if (file) return file;
    this.kept = undefined;
    this.#hold(new Blob([]));
    this.warning ??= unkept(name, 'it is open elsewhere, or this browser has no files for it');
    return undefined;
  }

  #record(name: string, { size = 0, validator }: Partial<Known>, whole: boolean, sums?: string[]) {
    const { sum } = this.spec;
    return writeRecord({ name, size, validator, sums: sums ?? (sum ? [sum] : []), whole });
  }

  /** Removes what was loaded. */
  async #drop(name: string): Promise<void> {
    this.#hold(new Blob([]));
    this.#memory = undefined;
    if (this.kept) await dropDownload(name).catch(() => undefined);
    this.kept = undefined;
  }

  async #check(name: string, sha256: string, isKept: boolean): Promise<void> {
    const { sum } = this.spec;
    const sums = [sha256];
    if (sum?.length === 40) sums.push(await gitId(this.#blob));
    const got = sums.at(-1) ?? sha256;
    if (sum !== undefined && got !== sum) {
      await this.#drop(name);
      const values = { subject: escaped(name), expected: sum, found: got };
      throw fault('source.integrity', values, { want: sum, got });
    }
    this.#isWhole = true;
    this.#memory = undefined;
    if (isKept) await this.#record(name, this.known, true, sums);
  }
}

const isChanged = (thrown: unknown): boolean =>
  thrown instanceof TabtuneError &&
  ['source.changed', 'source.range'].some((code) => code === thrown.detail.code);

export const unkept = (name: string, found: string): Finding =>
  finding('download.unkept', { subject: escaped(name), found });
