/** Requests for models and data: the only place of the worker that sends one, except for the synchronous requests of ranges. */
import { unlessAborted } from '../protocol/abort.js';
import { fault } from '../protocol/errors.js';
import type { SourceSpec } from '../protocol/protocol.js';
import { quoted } from './storage/faults.js';
import { wait } from '../protocol/wait.js';

export type UrlSpec = Extract<SourceSpec, { kind: 'url' }>;

/** Delays before a request is repeated. */
export const DELAYS_MILLIS = [0, 1000, 4000];
/** Maximum time that a server may ask to wait. */
const WAIT_MILLIS = 60_000;

/** Returns the properties in which a request differs from a plain one. */
export const partsOf = ({ parts }: UrlSpec): NonNullable<UrlSpec['parts']> =>
  parts ?? { fields: {}, headers: [] };

/** Waits for a time, or throws when the signal aborts. */
export const pause = (millis: number, signal: AbortSignal): Promise<unknown> =>
  unlessAborted(wait(millis), signal, 'the download');

/** Returns the time that a busy server asks to wait, in seconds or until a date; NaN if it states none. */
function waitOf(headers: Headers): number {
  const said = headers.get('retry-after') ?? '';
  return /^\d+$/.test(said) ? Number(said) * 1000 : Date.parse(said) - Date.now();
}

/**
 * Sends the request of a source with additional headers. It is repeated up to three times while the server is busy (429 or 503), or if it fails and
 * has `integrity`: browsers check whole bodies, and so fail it also if the body broke off.
 */
export async function request(
  spec: UrlSpec,
  signal: AbortSignal,
  more: [string, string][] = [],
): Promise<Response> {
  const { fields, headers, body } = partsOf(spec);
  const pairs = [...headers, ...more].map(([key = '', value = '']): [string, string] => [
    key,
    value,
  ]);
  for (let tries = 0; ; tries += 1) {
    const delay = DELAYS_MILLIS[tries];
    const response = await fetch(spec.url, {
      ...fields,
      headers: pairs,
      body: body ?? null,
      signal,
    }).catch((thrown: unknown) => {
      if (signal.aborted || delay === undefined || fields['integrity'] === undefined) throw thrown;
    });
    if (response && (delay === undefined || (response.status !== 429 && response.status !== 503)))
      return response;
    await response?.body?.cancel();
    const wait = (response && waitOf(response.headers)) || (delay ?? 0);
    if (wait > WAIT_MILLIS) {
      const found = `HTTP ${response?.status}, and its server asks to wait for ${Math.ceil(wait / 1000)} seconds`;
      throw fault('source.download', { subject: quoted(spec.url), found });
    }
    await pause(wait, signal);
  }
}

/** Returns whether a request can ask for a part of its file: only a GET can, and browsers check the integrity of whole bodies only. */
export const hasRanges = (spec: UrlSpec): boolean => {
  const { method, integrity } = partsOf(spec).fields;
  return method === undefined && integrity === undefined;
};
