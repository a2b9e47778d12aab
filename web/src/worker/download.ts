/** Downloads a whole file: a download that ends early is continued by range requests if the server allows it. */
import { aborted, fault } from '../protocol/errors.js';
import type { SourceSpec } from '../protocol/protocol.js';
import type { OnProgress } from '../protocol/reports.js';
import { rangeOf, validatorOf } from './http-headers.js';
import { nameOf, quoted } from './storage/faults.js';

type Spec = Extract<SourceSpec, { kind: 'url' }>;

/** Number of bytes gathered before they become a Blob, which the browser can move to disk. */
const GATHERED_BYTES = 8 << 20;
const REPORTED_BYTES = 1 << 20;
/** Delays before a download that ended early is continued; any progress restarts the sequence. */
const DELAYS_MILLIS = [0, 1000, 4000];

class Download {
  readonly #pieces: Blob[] = [];
  #gathered: Uint8Array<ArrayBuffer>[] = [];
  #gatheredBytes = 0;
  #reported = 0;
  #loaded = 0;
  #total: number | undefined;
  /** A strong ETag or a date, which shows that it is still the same file. */
  #validator: string | undefined;

  constructor(
    private readonly spec: Spec,
    private readonly signal: AbortSignal,
    private readonly onProgress: OnProgress,
  ) {}

  get #url(): string {
    return quoted(this.spec.url);
  }

  async whole(): Promise<Blob> {
    const first = await this.#first();
    const encoding = first.headers.get('content-encoding') ?? 'identity';
    const length = first.headers.get('content-length');
    // The length of an encoded body is not that of the file.
    if (encoding === 'identity' && length !== null) this.#total = Number(length);
    if (encoding === 'identity') this.#validator = validatorOf(first.headers);
    let ended = await this.#read(first, 0);
    for (let tries = 0; !ended && tries < DELAYS_MILLIS.length;) {
      await this.#wait(DELAYS_MILLIS[tries] ?? 0);
      const before = this.#loaded;
      ended = await this.#further();
      tries = this.#loaded > before ? 0 : tries + 1;
    }
    if (!ended) throw this.#truncated('it did not continue');
    this.#flush();
    return new Blob(this.#pieces);
  }

  #request(more: [string, string][] = []): Promise<Response> {
    const headers = this.spec.headers.map(([key = '', value = '']): [string, string] => [key, value]);
    return fetch(this.spec.url, { headers: [...headers, ...more], credentials: this.spec.credentials, signal: this.signal });
  }

  async #first(): Promise<Response> {
    let response: Response;
    try {
      response = await this.#request();
    } catch (thrown) {
      if (this.signal.aborted) throw aborted('the download');
      throw fault(
        'source.download',
        { subject: this.#url, found: "the network, CORS or the page's Content-Security-Policy refused it" },
        {},
        thrown,
      );
    }
    if (!response.ok) throw fault('source.download', { subject: this.#url, found: `HTTP ${response.status}` });
    return response;
  }

  /** Downloads the rest, from the byte at which the download broke off. */
  async #further(): Promise<boolean> {
    if (this.#validator === undefined) throw this.#truncated('the server does not say whether it is still the same file');
    let response: Response;
    try {
      response = await this.#request([
        ['range', `bytes=${this.#loaded}-`],
        ['if-range', this.#validator],
      ]);
    } catch {
      if (this.signal.aborted) throw aborted('the download');
      return false;
    }
    const now = validatorOf(response.headers);
    const changed = now !== undefined && now !== this.#validator;
    if (changed || response.status === 416) throw fault('source.changed', { subject: this.#url });
    // Servers without range support send the whole file again.
    if (response.status === 200) return this.#read(response, this.#loaded);
    if (response.status !== 206) throw this.#truncated(`HTTP ${response.status} for the rest`);
    this.#checkRange(response);
    return this.#read(response, 0);
  }

  #checkRange(response: Response): void {
    const said = response.headers.get('content-range');
    const { from, total } = rangeOf(said);
    if (this.#total !== undefined && total !== undefined && total !== this.#total) {
      throw fault('source.changed', { subject: this.#url, expected: `${this.#total} bytes`, found: total });
    }
    // A cross-origin reply may hide its range; the length shows it as well.
    const length = Number(response.headers.get('content-length') ?? NaN);
    const fits = said === null ? this.#total !== undefined && length === this.#total - this.#loaded : from === this.#loaded;
    if (!fits)
      throw fault('source.range', {
        subject: this.#url,
        expected: `bytes from ${this.#loaded} on`,
        found: quoted(said ?? 'an unknown range'),
      });
    this.#total ??= total;
  }

  /** Reads a body to its end, skipping bytes that were already read. Returns whether the file is complete. */
  async #read(response: Response, passed: number): Promise<boolean> {
    let skip = passed;
    const reader = response.body?.getReader();
    try {
      for (;;) {
        const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
        if (done) break;
        const kept = value.subarray(Math.min(skip, value.byteLength));
        skip -= value.byteLength - kept.byteLength;
        this.#take(kept);
      }
    } catch {
      if (this.signal.aborted) throw aborted('the download');
      return false;
    }
    // More bytes than announced: the body was encoded, and its length hidden.
    if (this.#total !== undefined && this.#loaded > this.#total) this.#total = undefined;
    return this.#total === undefined ? skip === 0 : this.#loaded === this.#total;
  }

  #take(bytes: Uint8Array<ArrayBuffer>): void {
    if (bytes.byteLength === 0) return;
    this.#gathered.push(bytes);
    this.#gatheredBytes += bytes.byteLength;
    this.#loaded += bytes.byteLength;
    if (this.#gatheredBytes >= GATHERED_BYTES) this.#flush();
    if (this.#loaded - this.#reported >= REPORTED_BYTES || this.#loaded === this.#total) this.#report();
  }

  #flush(): void {
    this.#pieces.push(new Blob(this.#gathered));
    this.#gathered = [];
    this.#gatheredBytes = 0;
  }

  #report(): void {
    this.#reported = this.#loaded;
    const fraction = this.#total ? Math.min(1, this.#loaded / this.#total) : 0;
    this.onProgress({
      phase: 'download',
      file: this.spec.name,
      loaded: this.#loaded,
      total: Math.max(this.#total ?? 0, this.#loaded),
      fraction,
    });
  }

  #truncated(why: string): Error {
    const expected = this.#total === undefined ? 'all of it' : `${this.#total} bytes`;
    const values = { subject: `the download of ${this.#url}`, expected, found: `${this.#loaded} (${why})` };
    return fault('source.truncated', values, { need: this.#total, have: this.#loaded });
  }

  async #wait(millis: number): Promise<void> {
    await new Promise<void>((resolve) => {
      setTimeout(resolve, millis);
      this.signal.addEventListener('abort', () => resolve(), { once: true });
    });
    if (this.signal.aborted) throw aborted('the download');
  }
}

export async function download(spec: Spec, signal: AbortSignal, onProgress: OnProgress): Promise<Blob> {
  try {
    return await new Download(spec, signal, onProgress).whole();
  } catch (thrown) {
    if (signal.aborted || nameOf(thrown) === 'AbortError') throw aborted('the download');
    throw thrown;
  }
}
