/** Files of an adapter's base in the record of its run. */
import { blob, count, fileHandle, flag, optional, record, text } from './parse.js';
import type { Parsed, Parser } from './parse.js';

const origin: Parser<FileSystemFileHandle | string> = (value, path) =>
  typeof value === 'string' ? value : fileHandle(value, path);
/** A file of an adapter's base as its run records it: where it can be opened again, or whether its bytes are stored. */
const baseFields = { name: text, bytes: count, from: optional(origin), stored: optional(flag) };
export const baseFile = record(baseFields);
export type BaseFile = Parsed<typeof baseFile>;
/** The same with the bytes, if they are stored. */
export const storedBaseFile = record({ ...baseFields, blob: optional(blob) });
export type StoredBaseFile = Parsed<typeof storedBaseFile>;
