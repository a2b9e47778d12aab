/** Remembers with a run where the base files of its adapter can be opened again, so that a resume in another page finds them without asking. */
import { answerTo } from '../protocol/answers.js';
import { aborted } from '../protocol/errors.js';
import type { SourceSpec } from '../protocol/protocol.js';
import type { OnProgress } from '../protocol/reports.js';
import { openSources } from './sources.js';
import type { KeptFile } from './storage/manifest.js';
import type { JsSource } from './wasm.js';

/**
 * Returns the records of these files, or undefined if one of them cannot be opened again. Requests with their own headers are not recorded, because
 * these may be secret.
 */
export function keptFiles(files: readonly JsSource[]): KeptFile[] | undefined {
  const kept = files.flatMap(({ name, origin }) =>
    origin === undefined ? [] : [{ name, from: origin }],
  );
  return kept.length > 0 && kept.length === files.length ? kept : undefined;
}

/**
 * Opens a recorded file. A file handle needs an existing permission, because requesting one needs a click. The origin's own files need none, and
 * browsers without other files have no query for it.
 */
async function found({ name, from }: KeptFile): Promise<SourceSpec> {
  if (typeof from === 'string') {
    // The sum finds a file that is kept.
    const [url = '', sum] = from.split('#sum=');
    return { kind: 'url', name, url, sum };
  }
  const query: unknown = Reflect.get(from, 'queryPermission');
  if (typeof query === 'function') {
    const state = await answerTo<unknown>(
      'permission',
      () => Reflect.apply(query, from, [{ mode: 'read' }]) as Promise<unknown>,
    );
    if (state !== 'granted') throw new Error('not granted');
  }
  return { kind: 'blob', name, blob: await from.getFile(), handle: from };
}

/** Opens the recorded files. Returns none if one of them is missing, so that the run asks for them by name. */
export async function reopened(
  kept: readonly KeptFile[],
  signal: AbortSignal,
  onProgress: OnProgress,
): Promise<JsSource[]> {
  try {
    return await openSources(await Promise.all(kept.map(found)), signal, onProgress, 'beginning');
  } catch {
    if (signal.aborted) throw aborted('the resume');
    return [];
  }
}
