/** Where the files beside which an adapter is trained can be had again, kept with the run: a resume in another page finds them without asking. */
import { aborted } from '../protocol/errors.js';
import type { SourceSpec } from '../protocol/protocol.js';
import type { OnProgress } from '../protocol/reports.js';
import { openSources } from './sources.js';
import type { KeptFile } from './storage/manifest.js';
import type { JsSource } from './wasm.js';

/** What is kept of these files; nothing if one of them cannot be had again. Requests with headers of their own are not kept: those may be secret. */
export function keptFiles(files: readonly JsSource[]): KeptFile[] | undefined {
  const kept = files.flatMap(({ name, origin }) => (origin === undefined ? [] : [{ name, from: origin }]));
  return kept.length > 0 && kept.length === files.length ? kept : undefined;
}

/** Only a permission that is there: asking for one needs a click. The origin's own files need none, and browsers that have no others cannot be asked. */
async function found({ name, from }: KeptFile): Promise<SourceSpec> {
  if (typeof from === 'string') return { kind: 'url', name, url: from, headers: [], credentials: 'same-origin' };
  const query: unknown = Reflect.get(from, 'queryPermission');
  if (typeof query === 'function' && (await Reflect.apply(query, from, [{ mode: 'read' }])) !== 'granted') throw new Error('not granted');
  return { kind: 'blob', name, blob: await from.getFile(), handle: from };
}

/** The kept files, opened; none if one of them is not there any more, and the run asks for them by name. */
export async function reopened(kept: readonly KeptFile[], signal: AbortSignal, onProgress: OnProgress): Promise<JsSource[]> {
  try {
    return await openSources(await Promise.all(kept.map(found)), signal, onProgress);
  } catch {
    if (signal.aborted) throw aborted('the resume');
    return [];
  }
}
