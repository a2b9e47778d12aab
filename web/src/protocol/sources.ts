/** Files as they are sent to the worker. */
import {
  blob,
  buffer,
  count,
  fileHandle,
  flag,
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
  /**
   * `sum` is the SHA-256 of the file or, if it is shorter, its id as a blob of git; `keep` allows its bytes to be kept for later. `hub` describes where
   * it came from by name.
   */
  url: {
    name: text,
    url: text,
    parts: optional(requestParts),
    sum: optional(text),
    size: optional(count),
    keep: optional(flag),
    hub: optional(record({ repo: text, revision: text, commit: text, page: text })),
  },
  /** A repository of a hub, or a file or folder in it; `commit` pins what `revision` was when it was first asked for. */
  hub: {
    name: text,
    hub: text,
    repo: text,
    dataset: flag,
    revision: text,
    commit: optional(text),
    path: text,
    quant: optional(text),
    token: optional(text),
    keep: optional(flag),
  },
});
export type SourceSpec = Parsed<typeof sourceSpec>;

/** Files of training and validation data, and the names of folder entries that are not read. */
export const dataSpec = record({
  files: listOf(sourceSpec),
  validation: listOf(sourceSpec),
  passedOver: listOf(text),
});
export type DataSpec = Parsed<typeof dataSpec>;
