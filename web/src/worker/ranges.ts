/** A file behind a URL, read range by range on request, so that its header can be read without the rest. */
import { aborted, fault } from '../protocol/errors.js';
import type { TabtuneError } from '../protocol/errors.js';
import { isEncoded, rangeOf, validatorOf } from './http-headers.js';
import { partsOf, request } from './http-request.js';
import type { UrlSpec } from './http-request.js';
import { quoted } from './storage/faults.js';
import type { JsSource } from './wasm.js';

/** Size of a piece; ranges begin and end at multiples of it. */
const PIECE_BYTES = 64 << 10;
/** Maximum number of pieces in one request. */
const REQUEST_PIECES = 128;
/** Maximum number of pieces kept in memory; the newest are kept. */
const KEPT_PIECES = 1024;

/** A source whose reads are synchronous, as the core needs them; only a worker may do that. */
export class RangedSource implements JsSource {
  readonly name: string;
  /** Error of a failed read, which the core passes on only as text. */
  failure: TabtuneError | undefined;
  readonly #pieces = new Map<number, Uint8Array>();
  readonly #validator: string | undefined;

  constructor(
    private readonly spec: UrlSpec,
    readonly size: number,
    headers: Headers,
    first: ArrayBuffer,
  ) {
    this.name = spec.name;
    this.#validator = validatorOf(headers);
    this.#keep(0, first);
  }

  /** An arrow function, because the core calls it without its object. */
  read = (offset: number, length: number): Uint8Array => {
    try {
      return this.#read(offset, offset + length);
    } catch (thrown) {
      this.failure ??= thrown as TabtuneError;
      throw thrown;
    }
  };

  #read(from: number, to: number): Uint8Array {
    if (to > this.size)
      throw fault('source.read', {
        subject: quoted(this.name),
        found: `bytes ${from} to ${to} were requested, but it has ${this.size}`,
      });
    const bytes = new Uint8Array(to - from);
    for (let at = from; at < to;) {
      const index = Math.floor(at / PIECE_BYTES);
      const piece = this.#pieces.get(index) ?? this.#fetched(index, Math.ceil(to / PIECE_BYTES));
      const begin = index * PIECE_BYTES;
      const part = piece.subarray(at - begin, to - begin);
      bytes.set(part, at - from);
      at += part.byteLength;
    }
    return bytes;
  }

  /** Fetches the piece with this index, together with the missing ones that follow it. */
  #fetched(index: number, end: number): Uint8Array {
    let last = index + 1;
    while (last < Math.min(end, index + REQUEST_PIECES) && !this.#pieces.has(last)) last += 1;
    return this.#keep(
      index,
      this.#request(index * PIECE_BYTES, Math.min(last * PIECE_BYTES, this.size)),
    );
  }

  #keep(index: number, bytes: ArrayBuffer): Uint8Array {
    for (let at = 0; at < bytes.byteLength; at += PIECE_BYTES)
      this.#pieces.set(
        index + at / PIECE_BYTES,
        new Uint8Array(bytes, at, Math.min(PIECE_BYTES, bytes.byteLength - at)),
      );
    const piece = this.#pieces.get(index) ?? new Uint8Array();
    for (const oldest of this.#pieces.keys()) {
      if (this.#pieces.size <= KEPT_PIECES) break;
      this.#pieces.delete(oldest);
    }
    return piece;
  }

  #request(from: number, end: number): ArrayBuffer {
    const url = quoted(this.spec.url);
    const sent = new XMLHttpRequest();
    const { headers: more, fields } = partsOf(this.spec);
    sent.open('GET', this.spec.url, false);
    sent.responseType = 'arraybuffer';
    sent.withCredentials = fields['credentials'] === 'include';
    for (const [key = '', value = ''] of [...more, range(from, end)])
      sent.setRequestHeader(key, value);
    try {
      sent.send();
    } catch (thrown) {
      throw fault(
        'source.download',
        { subject: url, found: 'the connection was lost' },
        {},
        thrown,
      );
    }
    const { status } = sent;
    if (status !== 206 && status !== 200 && status !== 416)
      throw fault('source.download', { subject: url, found: `HTTP ${status}` });
    const headers = { get: (name: string) => sent.getResponseHeader(name) };
    const said = rangeOf(headers.get('content-range'));
    const now = validatorOf(headers);
    const changed =
      status === 416 ||
      (said.total !== undefined && said.total !== this.size) ||
      now !== this.#validator;
    if (changed) throw fault('source.changed', { subject: url });
    const bytes: unknown = sent.response;
    const whole = bytes instanceof ArrayBuffer && bytes.byteLength === end - from;
    const fits =
      status === 206 && !isEncoded(headers) && said.from === from && said.to === end - 1 && whole;
    if (!fits)
      throw fault('source.range', {
        subject: url,
        expected: `bytes ${from} to ${end}`,
        found: quoted(headers.get('content-range') ?? `HTTP ${status}`),
      });
    return bytes;
  }
}

const range = (from: number, end: number): [string, string] => [
  'range',
  `bytes=${from}-${end - 1}`,
];

/**
 * Opens a file for reading by ranges; `undefined` if its server does not support ranges or does not report the file's size and version, or if a
 * synchronous request cannot be what the caller's is.
 */
export async function rangedSource(
  spec: UrlSpec,
  signal: AbortSignal,
): Promise<RangedSource | undefined> {
  // Node has no synchronous requests.
  if (typeof XMLHttpRequest === 'undefined') return undefined;
  const { fields } = partsOf(spec);
  // Such a request is a GET with credentials or without.
  if (Object.keys(fields).some((key) => key !== 'credentials')) return undefined;
  // A synchronous request to the page's own origin always carries credentials.
  if (fields['credentials'] === 'omit' && new URL(spec.url).origin === globalThis.location?.origin)
    return undefined;
  try {
    const response = await request(spec, signal, [range(0, PIECE_BYTES)]);
    const { status, headers } = response;
    const { from, to, total } = rangeOf(headers.get('content-range'));
    const one = total !== undefined && total <= PIECE_BYTES;
    const fits =
      status === 206 && !isEncoded(headers) && (one || validatorOf(headers) !== undefined);
    if (fits && from === 0 && total !== undefined && to === Math.min(PIECE_BYTES, total) - 1) {
      const first = await response.arrayBuffer();
      if (first.byteLength === to + 1) return new RangedSource(spec, total, headers, first);
    } else await response.body?.cancel();
  } catch {
    if (signal.aborted) throw aborted('the download');
  }
  return undefined;
}
