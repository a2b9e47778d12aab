/** Inputs that the worker downloads: a URL, or a Request with all that it carries. */
import { aborted, badOption } from '../protocol/errors.js';
import { brandOf, isOf } from '../protocol/brand.js';
import type { SourceSpec } from '../protocol/protocol.js';

/** Returns the last segment of an address, without decoding it if it is badly encoded. */
export function lastSegment(url: string): string {
  const last = new URL(url).pathname.split('/').pop() ?? '';
  try {
    return decodeURIComponent(last) || 'download';
  } catch {
    return last;
  }
}

/** @internal Describes a plain request of an address. */
export const ofUrl = (url: string): Extract<SourceSpec, { kind: 'url' }> => ({
  kind: 'url',
  name: lastSegment(url),
  url,
});

/** Properties of a Request that are sent along where they differ from those of a plain one. */
const FIELDS = [
  'method',
  'mode',
  'credentials',
  'cache',
  'redirect',
  'referrer',
  'referrerPolicy',
  'integrity',
] as const;
/** Their values with which an answer has no file that can be read. */
const UNREADABLE = ['HEAD', 'no-cors', 'navigate', 'manual'];

/** @internal Describes a Request, whose body is read; the Request can still be sent. */
export async function ofRequest(request: Request, path: string): Promise<SourceSpec> {
  const { url, headers, bodyUsed } = request;
  const refuse = (key: string, found: unknown): Error =>
    badOption(`${path}.${key}`, 'one with which the whole file can be read', found);
  const plain = new Request(url);
  const fields: Record<string, string> = {};
  for (const key of FIELDS) {
    const value = request[key];
    if (UNREADABLE.includes(value)) throw refuse(key, value);
    if (value !== plain[key]) fields[key] = value;
  }
  if (headers.has('range')) throw refuse('headers', 'Range');
  if (bodyUsed) throw refuse('body', 'one that was read');
  const body = await request.clone().arrayBuffer();
  const parts = { fields, headers: [...headers], body: body.byteLength > 0 ? body : undefined };
  return {
    kind: 'url',
    name: lastSegment(url),
    url,
    parts: Object.keys(fields).length + parts.headers.length > 0 ? parts : undefined,
  };
}

function* requestsIn(input: unknown): Generator<Request> {
  if (isOf(input, 'Request')) yield input;
  else if (Array.isArray(input)) for (const one of input) yield* requestsIn(one);
  else if (brandOf(input) === 'Object')
    yield* requestsIn(Object.getOwnPropertyDescriptor(input, 'files')?.value);
}

/**
 * @internal Returns a signal that aborts with the call's own, and with that of each Request among its inputs. Throws `call.aborted` if one of them has
 * aborted.
 */
export function signalOf(
  signal: AbortSignal | undefined,
  ...inputs: unknown[]
): AbortSignal | undefined {
  const signals = [...requestsIn(inputs)].map((request) => request.signal);
  if (signals.length === 0) return signal;
  const any = AbortSignal.any(signal ? [signal, ...signals] : signals);
  if (any.aborted) throw aborted();
  return any;
}
