/** Files of Parquet as JSON lines. */
import { decompress } from 'fzstd';
import { parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import type { JsSource } from './wasm.js';

/** Integers as numbers, where those hold them, else as texts. */
const plain = (_: string, value: unknown): unknown => (typeof value === 'bigint' ? (Number.isSafeInteger(Number(value)) ? Number(value) : String(value)) : value);

/** The rows of a file, one group at a time, as a Blob, which the browser can move to disk. */
export async function jsonLines(source: JsSource, signal: AbortSignal): Promise<Blob> {
  const slice = (start: number, end = source.size): ArrayBuffer => source.read(start, end - start).slice().buffer;
  const file = { byteLength: source.size, slice };
  const compressors = { ZSTD: (input: Uint8Array, length: number): Uint8Array => decompress(input, new Uint8Array(length)) };
  const metadata = await parquetMetadataAsync(file);
  const groups: Blob[] = [];
  let rowStart = 0;
  for (const { num_rows: count } of metadata.row_groups) {
    signal.throwIfAborted();
    const rowEnd = rowStart + Number(count);
    const rows = await parquetReadObjects({ file, metadata, rowStart, rowEnd, compressors });
    groups.push(new Blob(rows.map((row) => `${JSON.stringify(row, plain)}\n`)));
    rowStart = rowEnd;
  }
  return new Blob(groups);
}
