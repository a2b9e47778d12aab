/** A checkpoint as a folder of files, as the native runner writes and reads it, and as a user may pick it. */
import { sinkFault, TabtuneError } from '../../protocol/errors.js';
import type { NamedFile, OnProgress } from '../../protocol/reports.js';
import {
  count,
  document,
  listOf,
  missing,
  record,
  ParseError,
  text,
} from '../../protocol/parse.js';
import type { Parsed } from '../../protocol/parse.js';
import { sha256 } from './chunks.js';
import { CHUNK_BYTES } from './database.js';
import { corrupt, quoted, tooNew } from './faults.js';
import { CHECKPOINT_JSON, MANIFEST_FORMAT, sumOf } from './manifest.js';
import type { ChunkRecord, FileRecord, Manifest, RunRecord } from './manifest.js';
import { isFileName } from './names.js';
import { bytesOf, carried, chunksIn } from './generation-copy.js';
import type { GenerationCopy } from './generation-copy.js';
import { drop, fileSink, pour } from './sinks.js';

/** Version of `checkpoint.json` that can be read. */
const DOCUMENT_VERSION = 1;
const MAX_DOCUMENT_BYTES = 64 << 20;

const documentParser = record({
  train: record({ steps: count, adapter: missing(document) }),
  progress: record({ completed_steps: count }),
  environment: record({ version: text, adapter: text }),
  files: listOf(record({ name: text, bytes: count, pieces: listOf(text) })),
  base: missing(record({ files: listOf(record({ name: text, bytes: count })) })),
});
type Document = Parsed<typeof documentParser>;

/** Checks the files of a folder against its `checkpoint.json`. Files that it does not name are ignored. */
export async function readFolder(given: readonly NamedFile[]): Promise<GenerationCopy> {
  const files = new Map(given.map(({ name, blob }) => [name, blob]));
  const own = files.get(CHECKPOINT_JSON);
  if (own === undefined)
    throw corrupt(
      `${CHECKPOINT_JSON} is absent: these are not the files of a checkpoint`,
      'checkpoint.corrupt',
      { path: CHECKPOINT_JSON },
    );
  const description = await parsedDocument(own);
  const listed: FileRecord[] = [];
  let index = 0;
  for (const file of description.files) {
    if (
      !isFileName(file.name) ||
      file.name === CHECKPOINT_JSON ||
      listed.some(({ name }) => name === file.name)
    ) {
      throw corrupt(
        `${CHECKPOINT_JSON} names a file ${quoted(file.name)}`,
        'checkpoint.container.name',
      );
    }
    const blob = files.get(file.name);
    if (blob === undefined)
      throw corrupt(`${quoted(file.name)} is absent`, 'checkpoint.corrupt', { path: file.name });
    if (blob.size !== file.bytes)
      throw corrupt(
        `${quoted(file.name)}: expected ${file.bytes} bytes, found ${blob.size}`,
        'checkpoint.file.length',
      );
    const chunks = chunksFrom(file.pieces, file, index);
    index += chunks.length;
    listed.push({ name: file.name, bytes: file.bytes, chunks });
  }
  const ownChunks: ChunkRecord[] = [];
  for (let at = 0; at < own.size; at += CHUNK_BYTES) {
    const bytes = await own.slice(at, at + CHUNK_BYTES).arrayBuffer();
    ownChunks.push({ index: index++, bytes: bytes.byteLength, sha256: await sha256(bytes) });
  }
  listed.push({ name: CHECKPOINT_JSON, bytes: own.size, chunks: ownChunks });
  return {
    manifest: manifestOf(description, listed),
    record: recordOf(description),
    history: [],
    ...chunksIn(files, undefined),
  };
}

/** Returns the record of a run that trains an adapter, whose base files are not in the folder. */
function recordOf({ train, base }: Document): RunRecord | undefined {
  if (!train.adapter || !base) return undefined;
  return { run: '', label: '', createdAt: 0, dataName: '', driver: '{}', base: base.files };
}

function manifestOf({ train, progress, environment }: Document, files: FileRecord[]): Manifest {
  const step = progress.completed_steps;
  return {
    format: MANIFEST_FORMAT,
    run: '',
    generation: 1,
    label: `checkpoint-${step}`,
    step,
    totalSteps: train.steps,
    savedAt: Date.now(),
    bytes: sumOf(files),
    environment,
    files,
  };
}

async function parsedDocument(blob: Blob): Promise<Document> {
  const bad = (what: string, path: string): Error =>
    corrupt(`${CHECKPOINT_JSON}: ${what}`, 'checkpoint.corrupt', { path });
  if (blob.size > MAX_DOCUMENT_BYTES)
    throw bad(`${blob.size} bytes, at most ${MAX_DOCUMENT_BYTES}`, CHECKPOINT_JSON);
  let json: unknown;
  try {
    json = JSON.parse(await blob.text());
  } catch (thrown) {
    throw bad(thrown instanceof Error ? thrown.message : 'no JSON', CHECKPOINT_JSON);
  }
  const format: unknown = Reflect.get(Object(json), 'format');
  const version: unknown = Reflect.get(Object(json), 'version');
  if (format !== 'tabtune.checkpoint') throw bad('it is of another format', 'format');
  if (typeof version !== 'number' || !Number.isSafeInteger(version) || version < 1)
    throw bad('it has no version', 'version');
  if (version > DOCUMENT_VERSION) throw tooNew(version, DOCUMENT_VERSION);
  try {
    return documentParser(json, '');
  } catch (thrown) {
    if (!(thrown instanceof ParseError)) throw thrown;
    const path = thrown.message.slice(1, thrown.message.indexOf(':'));
    throw bad(thrown.message.slice(1), path);
  }
}

function chunksFrom(
  sums: readonly string[],
  { name, bytes }: { name: string; bytes: number },
  first: number,
): ChunkRecord[] {
  const pieces = Math.ceil(bytes / CHUNK_BYTES);
  const odd = sums.length !== pieces || sums.some((sum) => !/^[0-9a-f]{64}$/.test(sum));
  if (odd)
    throw corrupt(
      `${CHECKPOINT_JSON} has ${sums.length} sums for the ${pieces} pieces of ${quoted(name)}`,
      'checkpoint.corrupt',
      { path: name },
    );
  return sums.map((sum, at) => ({
    index: first + at,
    bytes: Math.min(CHUNK_BYTES, bytes - at * CHUNK_BYTES),
    sha256: sum,
  }));
}

/** Writes the checkpoint's files; while they are written the folder has no `checkpoint.json`, so it is never mistaken for a complete one. */
export async function writeFolder(
  copy: GenerationCopy,
  folder: FileSystemDirectoryHandle,
  signal?: AbortSignal,
  onProgress?: OnProgress,
): Promise<void> {
  const isLast = ({ name }: FileRecord): boolean => name === CHECKPOINT_JSON;
  const { files } = copy.manifest;
  try {
    await drop(folder, CHECKPOINT_JSON);
    for (const file of [...files.filter((each) => !isLast(each)), ...files.filter(isLast)]) {
      const one = { manifest: { ...copy.manifest, files: [file] }, chunk: copy.chunk };
      await pour(
        await fileSink(await folder.getFileHandle(file.name, { create: true })),
        bytesOf(carried(one, 'export', signal, onProgress)),
      );
    }
  } catch (thrown) {
    throw thrown instanceof TabtuneError ? thrown : sinkFault(thrown);
  }
}
