/** A checkpoint as one file: `TABTUNE1`, u64 length of the JSON head, the head, then every chunk in its order. */
import { TabtuneError } from '../errors.js';
import { count, record } from '../shape.js';
import { CHUNK_BYTES, MANIFEST_FORMAT, manifestShape, runShape, sha256 } from './database.js';
import type { Manifest, RunRecord } from './database.js';
import type { NextChunk } from './generations.js';

const MAGIC = 'TABTUNE1';
/** A head lists tensors' chunks only; one that is larger is no head. */
const MAX_HEAD_BYTES = 16 << 20;

const headShape = record({ format: count, manifest: manifestShape, run: runShape });

export function writeContainer(manifest: Manifest, files: Map<string, Blob>, run: RunRecord, data: Blob | undefined): Blob {
  const head = new TextEncoder().encode(JSON.stringify({ format: MANIFEST_FORMAT, manifest, run }));
  const front = new ArrayBuffer(16);
  new Uint8Array(front).set(new TextEncoder().encode(MAGIC));
  new DataView(front).setBigUint64(8, BigInt(head.byteLength), true);
  const bodies = manifest.files.flatMap((file) => files.get(file.name) ?? []);
  return new Blob([front, head, ...bodies, ...(data ? [data] : [])], { type: 'application/octet-stream' });
}

export interface Imported {
  manifest: Manifest;
  run: RunRecord;
  /** Chunks of the manifest's files, verified as they are read. */
  next: NextChunk;
  data: Blob | undefined;
}

const refuse = (what: string, code: string): TabtuneError => new TabtuneError('CHECKPOINT_CORRUPT', `not a whole tabtune checkpoint file: ${what}`, { code });

/** Opens an exported file; nothing in it is used as a path. */
export async function readContainer(blob: Blob): Promise<Imported> {
  const front = await blob.slice(0, 16).arrayBuffer();
  if (front.byteLength < 16 || new TextDecoder().decode(front.slice(0, 8)) !== MAGIC) throw refuse('its first bytes are not TABTUNE1', 'checkpoint.container.magic');
  const headBytes = Number(new DataView(front).getBigUint64(8, true));
  if (headBytes > MAX_HEAD_BYTES || 16 + headBytes > blob.size) throw refuse(`a head of ${headBytes} bytes`, 'checkpoint.container.head');
  const { format, manifest, run } = await parseHead(blob.slice(16, 16 + headBytes));
  if (format > MANIFEST_FORMAT || manifest.format > MANIFEST_FORMAT) {
    throw new TabtuneError('CHECKPOINT_VERSION', `checkpoint format ${format}: this version reads up to ${MANIFEST_FORMAT}. Update the page.`, { code: 'checkpoint.version' });
  }
  const hostile = manifest.files.find(({ name }) => /[/\\\0]|\.\./.test(name) || name === '');
  if (hostile) throw refuse('a file name that is a path', 'checkpoint.container.name');
  const chunks = [...manifest.files.flatMap((file) => file.chunks), ...(run.data?.chunks ?? [])];
  const total = chunks.reduce((sum, chunk) => sum + chunk.bytes, 0);
  if (16 + headBytes + total !== blob.size) throw refuse(`expected ${16 + headBytes + total} bytes, found ${blob.size}`, 'checkpoint.container.length');
  const fileBytes = manifest.files.reduce((sum, file) => sum + file.bytes, 0);
  const pieces = verifiedPieces(blob, 16 + headBytes, manifest.files.flatMap((file) => file.chunks));
  const dataStart = 16 + headBytes + fileBytes;
  let data: Blob | undefined;
  if (run.data) {
    const kept: ArrayBuffer[] = [];
    for await (const piece of verifiedPieces(blob, dataStart, run.data.chunks)) kept.push(piece.slice().buffer);
    data = new Blob(kept);
  }
  return { manifest, run, data, next: async () => (await pieces.next()).value ?? undefined };
}

async function parseHead(bytes: Blob): Promise<ReturnType<typeof headShape>> {
  try {
    const json: unknown = JSON.parse(await bytes.text());
    return headShape(json, 'head');
  } catch (thrown) {
    throw refuse(thrown instanceof Error ? thrown.message : 'its head', 'checkpoint.container.head');
  }
}

async function* verifiedPieces(blob: Blob, start: number, chunks: Manifest['files'][number]['chunks']): AsyncGenerator<Uint8Array<ArrayBuffer>, undefined> {
  let at = start;
  for (const [index, chunk] of chunks.entries()) {
    if (chunk.bytes > 2 * CHUNK_BYTES) throw refuse(`chunk ${index} of ${chunk.bytes} bytes`, 'checkpoint.container.chunk');
    const bytes = await blob.slice(at, at + chunk.bytes).arrayBuffer();
    if ((await sha256(bytes)) !== chunk.sha256) throw refuse(`chunk ${index}: its SHA-256 differs`, 'checkpoint.chunk.hash');
    at += chunk.bytes;
    yield new Uint8Array(bytes);
  }
  return undefined;
}
