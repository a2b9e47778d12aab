/** Training data in the form in which the core reads them: range by range, so that large files are never in memory as a whole. */
import { escaped, fault, finding, messageOf } from '../protocol/errors.js';
import type { Word } from '../protocol/errors.js';
import type { DataReport } from '../protocol/reports.js';
import type { DataSpec, SourceSpec } from '../protocol/protocol.js';
import type { OnProgress } from '../protocol/reports.js';
import { checkWhole, MEMORY_BYTES, tokenBytes } from '../protocol/whole.js';
import { blobSource, openSources, warningsOf } from './sources.js';
import { tokenStorage } from './storage/tokens.js';
import type { TokenStorage } from './storage/tokens.js';
import type { JsSource } from './wasm.js';

/** Data of a run, and the storage for tokens that are too many for memory. */
export interface RunData {
  files: JsSource[];
  validation: JsSource[];
  /** Names of folder entries that are not read. */
  passedOver: string[];
  storage: TokenStorage | undefined;
}

/** Size in bytes up to which the tokens of data fit into memory. */
const SMALL_BYTES = 8 << 20;
const GZIP = '31,139';
const PARQUET = '80,65,82,49';

/** Returns the first bytes of a file as a list. */
const beginningOf = (source: JsSource): string => source.read(0, Math.min(4, source.size)).join();

/**
 * Returns the number of bytes in a file, or in its contents if it is a gzip file: it ends with their number (RFC 1952, section 2.3.1). Of several
 * members, only the last one counts.
 */
function sizeOf(source: JsSource): number {
  const { size } = source;
  if (!beginningOf(source).startsWith(GZIP) || size < 8) return size;
  const end = source.read(size - 4, 4);
  return Math.max(size, new DataView(end.buffer, end.byteOffset).getUint32(0, true));
}

/** Opens data: Parquet files become JSON lines. The core unpacks gzip files as it reads them. */
export async function openData(
  { files, validation, passedOver }: DataSpec,
  signal: AbortSignal,
  onProgress: OnProgress,
): Promise<RunData> {
  return withStorage({
    files: await opened(files, signal, onProgress),
    validation: await opened(validation, signal, onProgress),
    passedOver,
  });
}

/** Adds storage for the tokens of the data, if they may need it. */
export async function withStorage(data: Omit<RunData, 'storage'>): Promise<RunData> {
  const all = [...data.files, ...data.validation];
  const size = all.reduce((sum, file) => sum + sizeOf(file), 0);
  const name = all[0]?.name ?? '';
  const storage =
    size > SMALL_BYTES ? await tokenStorage(tokenBytes(name, size), MEMORY_BYTES) : undefined;
  if (storage === undefined) checkWhole(name, size);
  return { ...data, storage };
}

/** Returns the warnings about how data were served, as a report on data has them. */
export const reported = (sources: readonly JsSource[]): DataReport['warnings'] =>
  warningsOf(sources).map((warning) => ({ ...warning, count: 1, rows: [] }));

/** Warns about validation data that no step evaluates. */
export function unevaluated(
  { validation }: RunData,
  evalEvery = 0,
): { code: Word; message: string }[] {
  if (validation.length === 0 || evalEvery > 0) return [];
  return [
    finding('data.validation.unused', {
      subject: 'validationData',
      expected: 'evalEvery, or call evaluate()',
    }),
  ];
}

/** Record of a file in the data that are stored with a run. */
export interface KeptData {
  name: string;
  bytes: number;
  validation: boolean;
}

export const keptOf = ({ files, validation }: RunData): KeptData[] =>
  [
    ...files.map((file) => ({ file, validation: false })),
    ...validation.map((file) => ({ file, validation: true })),
  ].map(({ file, ...of }) => ({ name: file.name, bytes: file.size, ...of }));

/** Splits the bytes that a run has stored into its data files. */
export function dataIn(kept: Blob, list: readonly KeptData[]): Promise<RunData> {
  let at = 0;
  const sources = list.map(({ name, bytes, validation }) => {
    at += bytes;
    return { validation, source: blobSource(name, kept.slice(at - bytes, at)) };
  });
  const sourcesOf = (wanted: boolean): JsSource[] =>
    sources.filter(({ validation }) => validation === wanted).map(({ source }) => source);
  return withStorage({ files: sourcesOf(false), validation: sourcesOf(true), passedOver: [] });
}

async function opened(
  specs: SourceSpec[],
  signal: AbortSignal,
  onProgress: OnProgress,
): Promise<JsSource[]> {
  const sources = await openSources(specs, signal, onProgress);
  return Promise.all(sources.map((source) => readable(source, signal)));
}

async function readable(source: JsSource, signal: AbortSignal): Promise<JsSource> {
  return beginningOf(source) === PARQUET ? fromParquet(source, signal) : source;
}

/** Converts the rows of a Parquet file to JSON lines. The Parquet reader is a separate module, loaded only when it is needed. */
async function fromParquet(source: JsSource, signal: AbortSignal): Promise<JsSource> {
  try {
    const { jsonLines } = await import('./parquet.js');
    return blobSource(
      source.name.replace(/\.parquet$/i, '.jsonl'),
      await jsonLines(source, signal),
    );
  } catch (thrown) {
    signal.throwIfAborted();
    throw fault(
      'data.parquet',
      { artifact: escaped(source.name), found: messageOf(thrown) },
      { path: source.name },
      thrown,
    );
  }
}

/** Runs `work` on data and closes their storage afterwards. */
export async function looked<T>(
  data: RunData,
  work: (data: RunData) => Promise<T> | T,
): Promise<T> {
  try {
    return await work(data);
  } finally {
    await data.storage?.close();
  }
}
