/** Errors of requests that a server or the network refused, in words that say what to do. */
import { escaped, fault } from '../protocol/errors.js';
import { partsOf } from './http-request.js';
import type { UrlSpec } from './http-request.js';
import { quoted } from './storage/faults.js';

/** Meaning of the status of a refusal. */
const MEANINGS: Readonly<Record<number, string>> = {
  401: 'it asks who is reading',
  403: 'it does not allow reading it',
  404: 'it has no such file',
  416: 'the file has fewer bytes',
  429: 'it was asked too often',
};

/** Returns the reason of a request that got no reply. */
export function unansweredReason(integrity = false): string {
  if (!(globalThis.navigator?.onLine ?? true)) return 'this device is offline';
  const own = integrity ? ', or its bytes are not those that integrity states' : '';
  return `the network, CORS or the page's Content-Security-Policy refused it${own}`;
}

/** Returns the error of a reply of the hub that refuses a repository or one of its files. */
export function refusedByHub(
  subject: string,
  page: string,
  { status, headers }: Pick<Response, 'status' | 'headers'>,
): Error {
  const code = headers.get('x-error-code');
  const values = { subject, expected: page };
  if (status === 403 || code === 'GatedRepo') return fault('hub.gated', values);
  if (status === 401 || code === 'RepoNotFound') return fault('hub.unknown', values);
  if (status === 404) {
    const found =
      code === 'RevisionNotFound'
        ? 'there is no such revision'
        : code === 'EntryNotFound'
          ? 'there is no such file'
          : 'there is no such repository, revision or file';
    return fault('hub.missing', { ...values, found });
  }
  return fault('source.download', { subject, found: statusText(status) });
}

const statusText = (status: number): string => {
  const meaning = MEANINGS[status];
  return `HTTP ${status}${meaning === undefined ? '' : `: ${meaning}`}`;
};

/** Returns the error of a download for which no reply came, or one that refuses it. */
export function refusedDownload(spec: UrlSpec, thrown?: unknown, response?: Response): Error {
  const subject = quoted(spec.url);
  if (response === undefined) {
    const integrity = partsOf(spec).fields['integrity'] !== undefined;
    return fault('source.download', { subject, found: unansweredReason(integrity) }, {}, thrown);
  }
  const { hub } = spec;
  return hub
    ? refusedByHub(escaped(`hf:${hub.repo}@${hub.revision}/${spec.name}`), hub.page, response)
    : fault('source.download', { subject, found: statusText(response.status) });
}
