/** Conversion of Parquet files to JSON lines. */
import { decompress } from 'fzstd';
import { parquetMetadataAsync, parquetReadObjects, parquetSchema } from 'hyparquet';
import type { FileMetaData } from 'hyparquet';
import type { JsSource } from './wasm.js';

/** Writes integers as numbers if a number can represent them, otherwise as strings. */
const plain = (_: string, value: unknown): unknown =>
  typeof value === 'bigint'
    ? Number.isSafeInteger(Number(value))
      ? Number(value)
      : String(value)
    : value;

type Node = ReturnType<typeof parquetSchema>;
const leaves = ({ children, path }: Node): string[] =>
  children.length === 0 ? [path.join('.')] : children.flatMap(leaves);

/** Refuses row groups whose columns differ from the schema: the reader would start reading some of them and leave their errors unhandled. */
function checkColumns(metadata: FileMetaData): void {
  const expected = leaves(parquetSchema(metadata)).sort().join('\n');
  for (const { columns } of metadata.row_groups) {
    const found = columns
      .map(({ meta_data }) => meta_data?.path_in_schema.join('.') ?? '')
      .sort()
      .join('\n');
    if (found !== expected) throw new Error('a group of rows has other columns than the schema');
  }
}

/** Returns the rows of a file, one group at a time, as a Blob, which the browser can move to disk. */
export async function jsonLines(source: JsSource, signal: AbortSignal): Promise<Blob> {
  // Returns a promise even if reading fails, since the reader has already started on other columns by then.
  const slice = async (start: number, end = source.size): Promise<ArrayBuffer> =>
    source.read(start, end - start).slice().buffer;
  const file = { byteLength: source.size, slice };
  const compressors = {
    ZSTD: (input: Uint8Array, length: number): Uint8Array =>
      decompress(input, new Uint8Array(length)),
  };
  const metadata = await parquetMetadataAsync(file);
  checkColumns(metadata);
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
