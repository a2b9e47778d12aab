/** The only reader of files: whatever the page hands over becomes a source of synchronous range reads. */
import { aborted, escaped, TabtuneError } from './errors.js';
import type { Progress, SourceSpec } from './protocol.js';
import type { JsSource } from './wasm.js';

export type OnProgress = (progress: Progress) => void;

/** A source over a Blob; reads one range at a time, so a weight file is never whole in memory. */
export function blobSource(name: string, blob: Blob): JsSource {
  const reader = new FileReaderSync();
  return {
    name,
    size: blob.size,
    read(offset, length) {
      const end = offset + length;
      if (end > blob.size) throw readError(name, `bytes ${offset} to ${end} asked of ${blob.size}`);
      try {
        return new Uint8Array(reader.readAsArrayBuffer(blob.slice(offset, end)));
      } catch (thrown) {
        throw readError(name, thrown instanceof Error ? thrown.message : String(thrown));
      }
    },
  };
}

export function bytesSource(name: string, bytes: Uint8Array): JsSource {
  return {
    name,
    size: bytes.byteLength,
    read(offset, length) {
      if (offset + length > bytes.byteLength) throw readError(name, `bytes ${offset} to ${offset + length} asked of ${bytes.byteLength}`);
      return bytes.subarray(offset, offset + length);
    },
  };
}

const readError = (name: string, reason: string): TabtuneError =>
  new TabtuneError('BAD_MODEL_FILE', `cannot read ${escaped(name)}: ${reason}`, { code: 'source.read' });

/** Opens what the page named; a URL is downloaded to a Blob first. */
export async function openSource(spec: SourceSpec, signal: AbortSignal, onProgress: OnProgress): Promise<JsSource> {
  switch (spec.kind) {
    case 'blob':
      return blobSource(spec.name, spec.blob);
    case 'bytes':
      return bytesSource(spec.name, new Uint8Array(spec.bytes));
    case 'url':
      return blobSource(spec.name, await download(spec, signal, onProgress));
    default:
      return spec satisfies never;
  }
}

export async function openSources(specs: SourceSpec[], signal: AbortSignal, onProgress: OnProgress): Promise<JsSource[]> {
  const sources: JsSource[] = [];
  for (const spec of specs) sources.push(await openSource(spec, signal, onProgress));
  return sources;
}

async function download(spec: Extract<SourceSpec, { kind: 'url' }>, signal: AbortSignal, onProgress: OnProgress): Promise<Blob> {
  let response: Response;
  try {
    const headers = spec.headers.map(([key = '', value = '']): [string, string] => [key, value]);
    response = await fetch(spec.url, { headers, credentials: spec.credentials, signal });
  } catch (thrown) {
    if (signal.aborted) throw aborted('the download');
    throw new TabtuneError(
      'BAD_MODEL_FILE',
      `cannot download ${escaped(spec.url)}: the network, CORS or the page's Content-Security-Policy refused it`,
      { code: 'source.download' },
      thrown,
    );
  }
  if (!response.ok || response.body === null) {
    throw new TabtuneError('BAD_MODEL_FILE', `cannot download ${escaped(spec.url)}: HTTP ${response.status}`, { code: 'source.download' });
  }
  const total = Number(response.headers.get('content-length') ?? 0);
  const pieces: Blob[] = [];
  let loaded = 0;
  let gathered: Uint8Array<ArrayBuffer>[] = [];
  let gatheredBytes = 0;
  const flush = (): void => {
    // Blobs can leave memory for disk; the arrays cannot.
    pieces.push(new Blob(gathered));
    gathered = [];
    gatheredBytes = 0;
  };
  const reader = response.body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      gathered.push(value);
      gatheredBytes += value.byteLength;
      loaded += value.byteLength;
      if (gatheredBytes >= 8 << 20) flush();
      onProgress({ phase: 'download', file: spec.name, loaded, total: Math.max(total, loaded), fraction: total > 0 ? Math.min(1, loaded / total) : 0 });
    }
  } catch (thrown) {
    if (signal.aborted) throw aborted('the download');
    throw new TabtuneError('BAD_MODEL_FILE', `the download of ${escaped(spec.url)} broke off after ${loaded} bytes`, { code: 'source.download' }, thrown);
  }
  flush();
  return new Blob(pieces);
}
