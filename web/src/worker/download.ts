/** Downloads a file from its beginning: a download that ends early is continued by range requests if the server allows it. */
import { aborted, fault, TabtuneError } from '../protocol/errors.js';
import { refusedDownload } from './http-refusals.js';
import { endsAt, isEncoded, lengthOf, rangeOf, sizeOf, validatorOf } from './http-headers.js';
import type { OnProgress } from '../protocol/reports.js';
import { DELAYS_MILLIS, hasRanges, pause, request } from './http-request.js';
import type { UrlSpec } from './http-request.js';
import type { Store } from './download-stores.js';
import { quoted } from './storage/faults.js';

const REPORTED_BYTES = 1 << 20;
/** Number of bytes that are requested again when a download is continued, to see that they are the same. */
const OVERLAP_BYTES = 32;

const STOPPED = 'it did not continue';
const UNKNOWN = 'the server does not say whether it is still the same file';

/** Facts about a file of which a part was loaded before. */
export interface Known {
  size: number | undefined;
  /** A strong ETag or a date. */
  validator: string | undefined;
}

/** A download into a store, of which a part may be there already. */
export class Download {
  #reported = 0;
  #loaded = 0;
  /** The last bytes that were loaded. */
  #tail = new Uint8Array();
  /** Size of the file, if the server states it. */
  #size: number | undefined;
  /** Shows that it is still the same file; undefined if the rest of it cannot be requested. */
  #validator: string | undefined;
  /** Content type of the file. */
  type = '';

  constructor(
    private readonly spec: UrlSpec,
    private readonly signal: AbortSignal,
    private readonly onProgress: OnProgress,
    private readonly store: Store,
    { size, validator }: Partial<Known> = {},
  ) {
    this.#size = size ?? spec.size;
    this.#validator = validator;
    this.#loaded = store.bytes;
    this.#tail = store.tail(OVERLAP_BYTES);
  }

  /** The byte from which the download is continued. */
  get #resumed(): number {
    return this.#loaded - this.#tail.byteLength;
  }

  get #url(): string {
    return quoted(this.spec.url);
  }

  /** Returns whether the sum of the bytes is known in advance, so that any server may send any part of them. */
  get #pinned(): boolean {
    return this.spec.sum !== undefined;
  }

  /** Loads the whole file, or its first bytes up to `until` and possibly more. `begun` is a reply with the beginning of it. */
  async load(until = Infinity, begun?: Response): Promise<void> {
    // A part that is there already is continued at once.
    let tries = this.#loaded > 0 ? -1 : 0;
    let ended = this.#isLoaded(until) || (tries === 0 && (await this.#first(until, begun)));
    for (; !ended && tries < DELAYS_MILLIS.length; tries += 1) {
      if (tries >= 0) await pause(DELAYS_MILLIS[tries] ?? 0, this.signal);
      const before = this.#loaded;
      const response = await this.#further(until);
      if (response === undefined) continue;
      if (response.status === 200) ended = await this.#begin(response);
      else {
        ended = await this.#read(response, until, this.#tail);
        // Progress restarts the sequence of delays.
        if (this.#loaded > before) tries = -1;
      }
    }
    if (!ended) throw this.#truncated(STOPPED);
  }

  #isLoaded(until: number): boolean {
    return this.#loaded > 0 && this.#loaded >= Math.min(until, this.#size ?? Infinity);
  }

  /** Requests the beginning of the file: by a range if only a part is wanted. Returns whether that is loaded. */
  async #first(until: number, begun?: Response): Promise<boolean> {
    const isPart = begun === undefined && until < (this.#size ?? Infinity);
    const reply = isPart ? await this.#answer([['range', `bytes=0-${until - 1}`]]) : begun;
    if (reply?.status === 206) {
      const length = Math.min(until, this.#size ?? NaN);
      const said = reply.headers.get('content-range');
      // Another origin may hide its range.
      if (said !== null || lengthOf(reply.headers) === length) return this.#adopt(reply, until);
    } else if (reply && reply.status !== 416) return this.#begin(reply);
    await reply?.body?.cancel();
    return this.#begin(await this.#answer());
  }

  async #answer(more?: [string, string][]): Promise<Response> {
    try {
      return await request(this.spec, this.signal, more);
    } catch (thrown) {
      if (this.signal.aborted || thrown instanceof TabtuneError) throw thrown;
      throw refusedDownload(this.spec, thrown);
    }
  }

  /** Reads a reply with the beginning of the file. Returns whether it has all bytes up to `until`. */
  async #adopt(response: Response, until: number): Promise<boolean> {
    const { headers } = response;
    const said = headers.get('content-range');
    const { from, total = this.#size } = said === null ? { from: 0 } : rangeOf(said);
    if (from !== 0 || total === undefined || isEncoded(headers))
      throw this.#wrongRange('bytes from 0 on', said);
    this.#size = total;
    this.#validator = validatorOf(headers);
    this.type = headers.get('content-type') ?? '';
    await this.#restart();
    return this.#read(response, until);
  }

  async #restart(): Promise<void> {
    this.#tail = new Uint8Array();
    this.#reported = this.#loaded = 0;
    await this.store.restart(this.#size);
  }

  get known(): Known {
    return { size: this.#size, validator: this.#validator };
  }

  /** Reads a reply with the whole file. Returns whether it is complete. */
  async #begin(response: Response): Promise<boolean> {
    const { headers, status } = response;
    if (status !== 200 && status !== 206) throw refusedDownload(this.spec, undefined, response);
    this.#size = sizeOf(response, this.#url);
    const validator = validatorOf(headers);
    if (
      !this.#pinned &&
      this.#validator !== undefined &&
      (validator ?? this.#validator) !== this.#validator
    )
      throw fault('source.changed', { subject: this.#url });
    this.#validator = isEncoded(headers) || !hasRanges(this.spec) ? undefined : validator;
    this.type = headers.get('content-type') ?? '';
    await this.#restart();
    return this.#read(response);
  }

  /**
   * Requests the rest, with the last bytes before it. Returns a reply with these, or from a server without ranges with the whole file again, or
   * undefined without a network.
   */
  async #further(until: number): Promise<Response | undefined> {
    const validator = this.#pinned ? undefined : this.#validator;
    if ((validator === undefined && !this.#pinned) || this.#loaded >= (this.#size ?? Infinity))
      throw this.#truncated(UNKNOWN);
    const last = until < (this.#size ?? Infinity) ? until - 1 : undefined;
    let response: Response;
    try {
      response = await request(this.spec, this.signal, [
        ['range', `bytes=${this.#resumed}-${last ?? ''}`],
        ...(validator === undefined ? [] : [['if-range', validator] satisfies [string, string]]),
      ]);
    } catch (thrown) {
      if (this.signal.aborted || thrown instanceof TabtuneError) throw thrown;
      return undefined;
    }
    if (response.status === 200) return response;
    const { headers, status } = response;
    const said = headers.get('content-range');
    const { from, total } = rangeOf(said);
    const size = this.#size ?? total;
    const now = validatorOf(headers);
    const changed = !this.#pinned && (now ?? validator) !== validator;
    if (status === 416 || changed || (total ?? size) !== size)
      throw fault('source.changed', { subject: this.#url });
    if (status !== 206) {
      const refused = refusedDownload(this.spec, undefined, response);
      if (this.spec.sum !== undefined) throw refused;
      throw this.#truncated(`HTTP ${status} for the rest`);
    }
    if (now === undefined && !this.#pinned) throw this.#truncated(UNKNOWN);
    // A cross-origin reply may hide its range; the length shows it as well.
    const length = (last === undefined ? (size ?? NaN) : last + 1) - this.#resumed;
    const fits =
      size !== undefined && (said === null ? lengthOf(headers) === length : from === this.#resumed);
    if (!fits || isEncoded(headers)) throw this.#wrongRange(`bytes from ${this.#resumed} on`, said);
    this.#size = size;
    return response;
  }

  #wrongRange(expected: string, said: string | null): Error {
    return fault('source.range', {
      subject: this.#url,
      expected,
      found: quoted(said ?? 'an unknown range'),
    });
  }

  /** Reads a body to its end, after the bytes that are known. Returns whether the file is complete, or has all bytes up to `until`. */
  async #read(response: Response, until = Infinity, known = new Uint8Array()): Promise<boolean> {
    const reader = response.body?.getReader();
    for (let seen = 0; ;) {
      const part = reader
        ? await reader.read().catch(() => undefined)
        : { done: true as const, value: undefined };
      if (part?.done) break;
      if (part === undefined) {
        if (this.signal.aborted) throw aborted('the download');
        return (response.type !== 'cors' && this.#loaded === this.#size) || this.#loaded >= until;
      }
      const { value } = part;
      const again = known.subarray(seen, seen + value.byteLength);
      if (again.some((byte, at) => byte !== value[at]))
        throw fault('source.changed', { subject: this.#url });
      seen += again.byteLength;
      this.#take(value.subarray(again.byteLength));
    }
    if (until < (this.#size ?? Infinity) && this.#loaded < (this.#size ?? 0))
      return this.#loaded >= until;
    if (endsAt(this.#loaded, this.#size, response)) {
      // The size of an encoded body is not that of the file.
      if (this.#loaded !== this.#size && (isEncoded(response.headers) || response.type === 'cors'))
        await this.#confirm();
      this.#size = this.#loaded;
      return true;
    }
    if (this.#loaded > (this.#size ?? Infinity))
      throw fault('source.range', {
        subject: this.#url,
        expected: `${this.#size} bytes`,
        found: `${this.#loaded} bytes`,
      });
    return false;
  }

  /**
   * Requests the last byte of a file whose body was encoded, because browsers accept an encoded body that was cut off. They request ranges without an
   * encoding, so that the length of the reply shows the size of the file. A server that does not state it, or that encodes this reply too, shows nothing.
   */
  async #confirm(): Promise<void> {
    const at = this.#loaded - 1;
    if (at < 0 || !hasRanges(this.spec)) return;
    const last = await request(this.spec, this.signal, [['range', `bytes=${at}-`]]).catch(
      () => undefined,
    );
    if (this.signal.aborted) throw aborted('the download');
    await last?.body?.cancel();
    if (!last?.ok) return;
    const size = (last.status === 206 ? at : 0) + (lengthOf(last.headers) ?? NaN);
    if (Number.isNaN(size) || size === this.#loaded || size === this.#size) return;
    this.#size = size;
    throw this.#truncated(STOPPED);
  }

  #take(bytes: Uint8Array<ArrayBuffer>): void {
    if (bytes.byteLength === 0) return;
    this.#tail = Uint8Array.of(...this.#tail, ...bytes.subarray(-OVERLAP_BYTES)).slice(
      -OVERLAP_BYTES,
    );
    this.store.append(bytes);
    this.#loaded += bytes.byteLength;
    if (this.#loaded - this.#reported >= REPORTED_BYTES || this.#loaded === this.#size)
      this.#report();
  }

  #report(): void {
    this.#reported = this.#loaded;
    const fraction = this.#size ? Math.min(1, this.#loaded / this.#size) : 0;
    this.onProgress({
      phase: 'download',
      file: this.spec.name,
      loaded: this.#loaded,
      total: Math.max(this.#size ?? 0, this.#loaded),
      fraction,
    });
  }

  #truncated(why: string): Error {
    const expected = this.#size === undefined ? 'all of it' : `${this.#size} bytes`;
    const values = {
      subject: `the download of ${this.#url}`,
      expected,
      found: `${this.#loaded} (${why})`,
    };
    return fault('source.truncated', values, { need: this.#size, have: this.#loaded });
  }
}
