/** A checkpoint as one file: `TABTUNE1`, u64 length of the JSON head, the head, then every chunk in order, then the run's data. */
import type { OnProgress } from '../../protocol/reports.js';
import { CHUNK_BYTES } from './database.js';
import { corrupt, tooNew } from './faults.js';
import { headJson, headParser, parsedJson } from './head.js';
import type { Head } from './head.js';
import { MANIFEST_FORMAT, sumOf } from './manifest.js';
import type { ChunkRecord } from './manifest.js';
import { isFileName } from './names.js';
import { chunksIn, dataOf, filesOf } from './generation-copy.js';
import type { GenerationCopy } from './generation-copy.js';

const MAGIC = 'TABTUNE1';
const FRONT_BYTES = 16;
/** Maximum size of a head, which lists chunks and holds a history. */
const MAX_HEAD_BYTES = 256 << 20;

/** Composes the file from Blobs, so that memory holds one chunk at a time; each chunk is verified. */
export async function writeContainer(
  copy: GenerationCopy,
  signal?: AbortSignal,
  onProgress?: OnProgress,
): Promise<Blob> {
  const head = headJson(copy);
  const front = new ArrayBuffer(FRONT_BYTES);
  new Uint8Array(front).set(new TextEncoder().encode(MAGIC));
  new DataView(front).setBigUint64(8, BigInt(head.byteLength), true);
  const files = copy.verified ?? (await filesOf(copy, 'export', signal, onProgress));
  const bodies = copy.manifest.files.flatMap(({ name }) => files.get(name) ?? []);
  const data = await dataOf(copy);
  return new Blob([front, head, ...bodies, ...(data ? [data] : [])], {
    type: 'application/octet-stream',
  });
}

/** Opens an exported file. Its head is checked here, its chunks when they are read; nothing in it is used as a path. */
export async function readContainer(blob: Blob): Promise<GenerationCopy> {
  const front = await blob.slice(0, FRONT_BYTES).arrayBuffer();
  if (front.byteLength < FRONT_BYTES || new TextDecoder().decode(front.slice(0, 8)) !== MAGIC) {
    throw corrupt('its first bytes are not TABTUNE1', 'checkpoint.container.magic');
  }
  const claimed = new DataView(front).getBigUint64(8, true);
  if (claimed > BigInt(MAX_HEAD_BYTES) || BigInt(FRONT_BYTES) + claimed > BigInt(blob.size)) {
    throw corrupt(
      `a head of ${claimed.toString()} bytes in a file of ${blob.size}`,
      'checkpoint.container.head',
    );
  }
  const start = FRONT_BYTES + Number(claimed);
  const { manifest, run: record, history = [] } = await parsedHead(blob.slice(FRONT_BYTES, start));
  const { files } = manifest;
  const names = new Set(files.map(({ name }) => name));
  if (names.size !== files.length || !files.every(({ name }) => isFileName(name)))
    throw corrupt('a file name that is a path, or a duplicate', 'checkpoint.container.name');
  const pieces = [...files, ...(record?.data ? [record.data] : [])];
  for (const { bytes, chunks } of pieces) checkChunks(bytes, chunks);
  if (manifest.bytes !== sumOf(files))
    throw corrupt(
      `its files have ${sumOf(files)} bytes, it says ${manifest.bytes}`,
      'checkpoint.container.head',
    );
  const end = start + sumOf(pieces);
  if (end !== blob.size)
    throw corrupt(`expected ${end} bytes, found ${blob.size}`, 'checkpoint.container.length');
  let at = start;
  const bodies = new Map(files.map(({ name, bytes }) => [name, blob.slice(at, (at += bytes))]));
  const data = record?.data && blob.slice(at, end);
  return {
    manifest,
    record,
    history,
    ...chunksIn(bodies, data, (where) => corrupt(where, 'checkpoint.container.chunk')),
  };
}

/** Checks that chunks have the form in which the storage writes them, because they are imported unchanged. */
function checkChunks(bytes: number, chunks: readonly ChunkRecord[]): void {
  const odd = chunks.find(
    (chunk) =>
      chunk.bytes === 0 || chunk.bytes > CHUNK_BYTES || !/^[0-9a-f]{64}$/.test(chunk.sha256),
  );
  if (odd) throw corrupt(`chunk ${odd.index} of ${odd.bytes} bytes`, 'checkpoint.container.chunk');
  if (sumOf(chunks) !== bytes)
    throw corrupt(
      `chunks of ${sumOf(chunks)} bytes for a file of ${bytes}`,
      'checkpoint.container.head',
    );
}

async function parsedHead(bytes: Blob): Promise<Head> {
  let json: unknown;
  try {
    json = parsedJson(new TextDecoder('utf-8', { fatal: true }).decode(await bytes.arrayBuffer()));
  } catch (thrown) {
    throw corrupt(
      thrown instanceof Error ? thrown.message : 'its head',
      'checkpoint.container.head',
    );
  }
  const formats = [
    Reflect.get(Object(json), 'format'),
    Reflect.get(Object(Reflect.get(Object(json), 'manifest')), 'format'),
  ];
  const newer = formats.find(
    (format): format is number => typeof format === 'number' && format > MANIFEST_FORMAT,
  );
  if (newer !== undefined) throw tooNew(newer, MANIFEST_FORMAT);
  try {
    return headParser(json, 'head');
  } catch (thrown) {
    throw corrupt(
      thrown instanceof Error ? thrown.message : 'its head',
      'checkpoint.container.head',
    );
  }
}
