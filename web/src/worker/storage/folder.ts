/** A checkpoint as a folder of files: what the native runner writes and reads, and what a user may pick. */
import { aborted } from '../../protocol/errors.js';
import type { NamedFile, OnProgress } from '../../protocol/reports.js';
import { count, listOf, optional, record, ParseError, text } from '../../protocol/parse.js';
import type { Parsed } from '../../protocol/parse.js';
import { Sha256 } from '../wasm.js';
import { sha256 } from './chunks.js';
import { CHUNK_BYTES } from './database.js';
import { corrupt, quoted, tooNew } from './faults.js';
import { CHECKPOINT_JSON, MANIFEST_FORMAT, sumOf } from './manifest.js';
import type { ChunkRecord, FileRecord, Manifest } from './manifest.js';
import { isFileName } from './names.js';
import { bytesOf, carried, chunksIn } from './parcel.js';
import type { Parcel } from './parcel.js';
import { drop, fileSink, pour } from './sinks.js';

/** Newest version of `checkpoint.json` that is read: 1 has one digest per file, 2 one per piece of 8 MiB, 3 also tensors and groups, 4 also adapters, which the core reads. */
const NEWEST_VERSION = 4;
const MAX_DOCUMENT_BYTES = 64 << 20;

const documentParser = record({
  train: record({ steps: count }),
  progress: record({ completed_steps: count }),
  written_by: optional(text),
  environment: optional(record({ version: text, adapter: text })),
  files: listOf(record({ name: text, bytes: count, sha256: optional(text), pieces: optional(listOf(text)) })),
});
type Document = Parsed<typeof documentParser>;

/** Checks the files of a folder against its `checkpoint.json`. Files that it does not name are ignored. */
export async function readFolder(given: readonly NamedFile[], signal?: AbortSignal, onProgress?: OnProgress): Promise<Parcel> {
  const files = new Map(given.map(({ name, blob }) => [name, blob]));
  const document = files.get(CHECKPOINT_JSON);
  if (document === undefined) throw corrupt(`${CHECKPOINT_JSON} is absent: these are not the files of a checkpoint`, 'checkpoint.corrupt', { path: CHECKPOINT_JSON });
  const said = await parsedDocument(document);
  const listed: FileRecord[] = [];
  let index = 0;
  for (const file of said.files) {
    if (!isFileName(file.name) || file.name === CHECKPOINT_JSON || listed.some(({ name }) => name === file.name)) {
      throw corrupt(`${CHECKPOINT_JSON} names a file ${quoted(file.name)}`, 'checkpoint.container.name');
    }
    const blob = files.get(file.name);
    if (blob === undefined) throw corrupt(`${quoted(file.name)} is absent`, 'checkpoint.corrupt', { path: file.name });
    if (blob.size !== file.bytes) throw corrupt(`${quoted(file.name)}: expected ${file.bytes} bytes, found ${blob.size}`, 'checkpoint.file.length');
    const sums = file.pieces ?? (await sumsOfWhole(file.name, blob, file.sha256, signal, onProgress));
    const chunks = chunksFrom(sums, file, index);
    index += chunks.length;
    listed.push({ name: file.name, bytes: file.bytes, chunks });
  }
  const own: ChunkRecord[] = [];
  for (let at = 0; at < document.size; at += CHUNK_BYTES) {
    const bytes = await document.slice(at, at + CHUNK_BYTES).arrayBuffer();
    own.push({ index: index++, bytes: bytes.byteLength, sha256: await sha256(bytes) });
  }
  listed.push({ name: CHECKPOINT_JSON, bytes: document.size, chunks: own });
  return { manifest: manifestOf(said, listed), record: undefined, history: [], ...chunksIn(files, undefined) };
}

function manifestOf({ train, progress, written_by, environment }: Document, files: FileRecord[]): Manifest {
  const step = progress.completed_steps;
  const made = environment ?? { version: written_by ?? '', adapter: '' };
  return { format: MANIFEST_FORMAT, run: '', generation: 1, label: `checkpoint-${step}`, step, totalSteps: train.steps, savedAt: Date.now(), bytes: sumOf(files), environment: made, files };
}

async function parsedDocument(blob: Blob): Promise<Document> {
  const bad = (what: string, path: string): Error => corrupt(`${CHECKPOINT_JSON}: ${what}`, 'checkpoint.corrupt', { path });
  if (blob.size > MAX_DOCUMENT_BYTES) throw bad(`${blob.size} bytes, at most ${MAX_DOCUMENT_BYTES}`, CHECKPOINT_JSON);
  let json: unknown;
  try {
    json = JSON.parse(await blob.text());
  } catch (thrown) {
    throw bad(thrown instanceof Error ? thrown.message : 'no JSON', CHECKPOINT_JSON);
  }
  const format: unknown = Reflect.get(Object(json), 'format');
  const version: unknown = Reflect.get(Object(json), 'version');
  if (format !== 'tabtune.checkpoint') throw bad('it is of another format', 'format');
  if (typeof version !== 'number' || !Number.isSafeInteger(version) || version < 1) throw bad('it has no version', 'version');
  if (version > NEWEST_VERSION) throw tooNew(version, NEWEST_VERSION);
  try {
    const said = documentParser(json, '');
    const unsummed = said.files.findIndex((file) => (version === 1 ? file.sha256 : file.pieces) === undefined);
    if (unsummed >= 0) throw new ParseError(`.files[${unsummed}]`, 'its sums', undefined);
    return said;
  } catch (thrown) {
    if (!(thrown instanceof ParseError)) throw thrown;
    const path = thrown.message.slice(1, thrown.message.indexOf(':'));
    throw bad(thrown.message.slice(1), path);
  }
}

function chunksFrom(sums: readonly string[], { name, bytes }: { name: string; bytes: number }, first: number): ChunkRecord[] {
  const pieces = Math.ceil(bytes / CHUNK_BYTES);
  const odd = sums.length !== pieces || sums.some((sum) => !/^[0-9a-f]{64}$/.test(sum));
  if (odd) throw corrupt(`${CHECKPOINT_JSON} has ${sums.length} sums for the ${pieces} pieces of ${quoted(name)}`, 'checkpoint.corrupt', { path: name });
  return sums.map((sum, at) => ({ index: first + at, bytes: Math.min(CHUNK_BYTES, bytes - at * CHUNK_BYTES), sha256: sum }));
}

/** The digests of a file's pieces, after the whole file was verified against its digest of version 1. The core sums it, because browsers sum only whole buffers. */
async function sumsOfWhole(name: string, blob: Blob, expected: string | undefined, signal?: AbortSignal, onProgress?: OnProgress): Promise<string[]> {
  const whole = new Sha256();
  const sums: string[] = [];
  for (let at = 0; at < blob.size; at += CHUNK_BYTES) {
    if (signal?.aborted) throw aborted('the import');
    const bytes = await blob.slice(at, at + CHUNK_BYTES).arrayBuffer();
    whole.update(new Uint8Array(bytes));
    sums.push(await sha256(bytes));
    onProgress?.({ phase: 'verify', file: name, loaded: at + bytes.byteLength, total: blob.size, fraction: (at + bytes.byteLength) / blob.size });
  }
  if (whole.finish() !== expected) throw corrupt(`${quoted(name)}: its SHA-256 differs`, 'checkpoint.chunk.hash');
  return sums;
}

/** Writes the checkpoint's files; while they are written the folder has no `checkpoint.json`, so it is never mistaken for a complete one. */
export async function writeFolder(parcel: Parcel, folder: FileSystemDirectoryHandle, signal?: AbortSignal, onProgress?: OnProgress): Promise<void> {
  await drop(folder, CHECKPOINT_JSON);
  const isLast = ({ name }: FileRecord): boolean => name === CHECKPOINT_JSON;
  const { files } = parcel.manifest;
  for (const file of [...files.filter((each) => !isLast(each)), ...files.filter(isLast)]) {
    const one = { manifest: { ...parcel.manifest, files: [file] }, chunk: parcel.chunk };
    await pour(await fileSink(await folder.getFileHandle(file.name, { create: true })), bytesOf(carried(one, 'export', signal, onProgress)));
  }
}
