/** Files as they are sent to the worker. */
import {
  blob,
  buffer,
  fileHandle,
  listOf,
  optional,
  record,
  tableOf,
  text,
  variant,
} from './parse.js';
import type { Parsed } from './parse.js';

/** Properties of a request in which it differs from a plain one of its address. */
const requestParts = record({
  fields: tableOf(text),
  headers: listOf(listOf(text)),
  body: optional(buffer),
});

export const sourceSpec = variant('kind', {
  /** `handle` allows the file to be opened again. */
  blob: { name: text, blob, handle: optional(fileHandle) },
  bytes: { name: text, bytes: buffer },
  url: { name: text, url: text, parts: optional(requestParts) },
});
export type SourceSpec = Parsed<typeof sourceSpec>;

/** Files of training and validation data, and the names of folder entries that are not read. */
export const dataSpec = record({
  files: listOf(sourceSpec),
  validation: listOf(sourceSpec),
  passedOver: listOf(text),
});
export type DataSpec = Parsed<typeof dataSpec>;
