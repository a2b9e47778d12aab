/** Downloads a whole file: a download that ends early is continued by range requests if the server allows it. */
import { aborted, fault, TabtuneError } from '../protocol/errors.js';
import { endsAt, isEncoded, lengthOf, rangeOf, sizeOf, validatorOf } from './http-headers.js';
import type { OnProgress } from '../protocol/reports.js';
import { DELAYS_MILLIS, hasRanges, partsOf, pause, request } from './http-request.js';
import type { UrlSpec } from './http-request.js';
import { nameOf, quoted } from './storage/faults.js';

/** Number of bytes gathered before they become a Blob, which the browser can move to disk. */
const GATHERED_BYTES = 8 << 20;
const REPORTED_BYTES = 1 << 20;
/** Number of bytes that are requested again when a download is continued, to see that they are the same. */
const OVERLAP_BYTES = 32;

const REFUSED = "the network, CORS or the page's Content-Security-Policy refused it";
const STOPPED = 'it did not continue';
const UNKNOWN = 'the server does not say whether it is still the same file';

class Download {
  #pieces: Blob[] = [];
  #gathered: Uint8Array<ArrayBuffer>[] = [];
  #gatheredBytes = 0;
  #reported = 0;
  #loaded = 0;
  /** The last bytes that were loaded. */
  #tail = new Uint8Array();
  /** Size of the file, if the server states it. */
  #size: number | undefined;
  /** A strong ETag or a date, which shows that it is still the same file; undefined if the rest of it cannot be requested. */
  #validator: string | undefined;
  /** Content type of the file. */
  #type = '';

  constructor(
    private readonly spec: UrlSpec,
    private readonly signal: AbortSignal,
    private readonly onProgress: OnProgress,
  ) {}

  /** The byte from which the download is continued. */
  get #resumed(): number {
    return this.#loaded - this.#tail.byteLength;
  }

  get #url(): string {
    return quoted(this.spec.url);
  }

  async whole(): Promise<Blob> {
    let ended = await this.#begin(await this.#first());
    for (let tries = 0; !ended && tries < DELAYS_MILLIS.length; tries += 1) {
      await pause(DELAYS_MILLIS[tries] ?? 0, this.signal);
      const before = this.#loaded;
      const response = await this.#further();
      if (response === undefined) continue;
      if (response.status === 200) ended = await this.#begin(response);
      else {
        ended = await this.#read(response, this.#tail);
        // Progress restarts the sequence of delays.
        if (this.#loaded > before) tries = -1;
      }
    }
    if (!ended) throw this.#truncated(STOPPED);
    this.#flush();
    return new Blob(this.#pieces, { type: this.#type });
  }

  async #first(): Promise<Response> {
    try {
      return await request(this.spec, this.signal);
    } catch (thrown) {
      if (this.signal.aborted || thrown instanceof TabtuneError) throw thrown;
      const found = `${REFUSED}${partsOf(this.spec).fields['integrity'] === undefined ? '' : ', or its bytes are not those that integrity states'}`;
      throw fault('source.download', { subject: this.#url, found }, {}, thrown);
    }
  }

  /** Reads a reply with the whole file. Returns whether it is complete. */
  #begin(response: Response): Promise<boolean> {
    const { headers } = response;
    this.#size = sizeOf(response, this.#url);
    const validator = validatorOf(headers);
    if (this.#validator !== undefined && (validator ?? this.#validator) !== this.#validator)
      throw fault('source.changed', { subject: this.#url });
    this.#validator = isEncoded(headers) || !hasRanges(this.spec) ? undefined : validator;
    this.#type = headers.get('content-type') ?? '';
    this.#pieces = [];
    this.#gathered = [];
    this.#tail = new Uint8Array();
    this.#gatheredBytes = this.#reported = this.#loaded = 0;
    return this.#read(response);
  }

  /**
   * Requests the rest, with the last bytes before it. Returns a reply with these, or from a server without ranges with the whole file again, or
   * undefined without a network.
   */
  async #further(): Promise<Response | undefined> {
    const validator = this.#validator;
    if (validator === undefined || this.#loaded >= (this.#size ?? Infinity))
      throw this.#truncated(UNKNOWN);
    let response: Response;
    try {
      response = await request(this.spec, this.signal, [
        ['range', `bytes=${this.#resumed}-`],
        ['if-range', validator],
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
    if (status === 416 || (now ?? validator) !== validator || (total ?? size) !== size)
      throw fault('source.changed', { subject: this.#url });
    if (status !== 206) throw this.#truncated(`HTTP ${status} for the rest`);
    if (now === undefined) throw this.#truncated(UNKNOWN);
    // A cross-origin reply may hide its range; the length shows it as well.
    const fits =
      size !== undefined &&
      (said === null ? lengthOf(headers) === size - this.#resumed : from === this.#resumed);
    if (!fits || isEncoded(headers))
      throw fault('source.range', {
        subject: this.#url,
        expected: `bytes from ${this.#resumed} on`,
        found: quoted(said ?? 'an unknown range'),
      });
    this.#size = size;
    return response;
  }

  /** Reads a body to its end, after the bytes that are known. Returns whether the file is complete. */
  async #read(response: Response, known = new Uint8Array()): Promise<boolean> {
    const reader = response.body?.getReader();
    for (let seen = 0; ;) {
      const part = reader
        ? await reader.read().catch(() => undefined)
        : { done: true as const, value: undefined };
      if (part?.done) break;
      if (part === undefined) {
        if (this.signal.aborted) throw aborted('the download');
        return response.type !== 'cors' && this.#loaded === this.#size;
      }
      const { value } = part;
      const again = known.subarray(seen, seen + value.byteLength);
      if (again.some((byte, at) => byte !== value[at]))
        throw fault('source.changed', { subject: this.#url });
      seen += again.byteLength;
      this.#take(value.subarray(again.byteLength));
    }
    if (endsAt(this.#loaded, this.#size, response)) {
      // The size of an encoded body is not that of the file.
      if (this.#loaded !== this.#size && (isEncoded(response.headers) || response.type === 'cors'))
        await this.#confirm();
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
    this.#gathered.push(bytes);
    this.#gatheredBytes += bytes.byteLength;
    this.#loaded += bytes.byteLength;
    if (this.#gatheredBytes >= GATHERED_BYTES) this.#flush();
    if (this.#loaded - this.#reported >= REPORTED_BYTES || this.#loaded === this.#size)
      this.#report();
  }

  #flush(): void {
    this.#pieces.push(new Blob(this.#gathered));
    this.#gathered = [];
    this.#gatheredBytes = 0;
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

export async function download(
  spec: UrlSpec,
  signal: AbortSignal,
  onProgress: OnProgress,
): Promise<Blob> {
  try {
    return await new Download(spec, signal, onProgress).whole();
  } catch (thrown) {
    if (signal.aborted || nameOf(thrown) === 'AbortError') throw aborted('the download');
    throw thrown;
  }
}
