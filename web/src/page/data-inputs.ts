/** Turns a caller's training data into files that can be sent to the worker. */
import { positive, positiveInteger, string } from './checks.js';
import { ownFields } from './given.js';
import { brandOf, isOf } from '../protocol/brand.js';
import { badOption, escaped, fault, TabtuneError } from '../protocol/errors.js';
import type { Values } from '../protocol/plain.js';
import type { DataSpec, SourceSpec } from '../protocol/protocol.js';
import { blobSpec, can, described, EXPECTED, gathered, isFolder, reading } from './inputs.js';
import type { BlobSpec, Input } from './inputs.js';
import { addressed, isAddress } from './names.js';
import type { Address } from './names.js';
import { keepLists } from './row-places.js';
import { areRows, jsonLines } from './rows.js';
import type { DataRow } from './rows.js';

/**
 * A file of training data, the text itself, or its token ids; `hf:datasets/owner/name` names the files of a data set. The type of a file (text, JSON lines, JSON, CSV, TSV or Parquet, optionally compressed
 * by gzip) is detected from its contents; `.tokens` files are recognised by name.
 */
export type DataFile =
  | Exclude<Input, string>
  | Address
  | { text: string; name?: string | undefined }
  | { tokens: Uint32Array; name?: string | undefined };
/** Rows that are given as objects or, if each is a text to learn, as texts. They must not change until the call has settled. */
export type DataRows = readonly DataRow[] | readonly string[];
/**
 * Part of a mixture, whose rows occur `weight` times per epoch; below 1, only that share of them does. From a folder, its .txt and .md files are
 * used.
 */
export interface WeightedData {
  /** The files or rows. */
  files:
    | DataFile
    | FileSystemDirectoryHandle
    | readonly (DataFile | FileSystemDirectoryHandle)[]
    | DataRows;
  /** How often the rows occur in one epoch. Default: 1. */
  weight?: number | undefined;
}
/** Training data: one file or several, or a list of rows. */
export type DataInput =
  | DataFile
  | FileSystemDirectoryHandle
  | FileList
  | WeightedData
  | DataRows
  | readonly (DataFile | FileSystemDirectoryHandle | WeightedData)[];

/** Maximum size of a file that is copied, so that editing or deleting it later has no effect. */
const COPIED_BYTES = 64 << 20;

/** Returns data given directly in an object (`{ text }` or `{ tokens }`), or undefined for any other input. */
function inline(input: object, path: string): BlobSpec | undefined {
  if (
    brandOf(input) !== 'Object' ||
    !(Object.hasOwn(input, 'text') || Object.hasOwn(input, 'tokens'))
  )
    return undefined;
  const {
    text,
    tokens,
    name = '',
  }: { text?: unknown; tokens?: unknown; name?: unknown } = ownFields(input);
  string(name, `${path}.name`);
  if (Object.hasOwn(input, 'text')) {
    if (typeof text !== 'string') throw badOption(`${path}.text`, 'a string', text);
    return blobSpec(String(name) || 'text.txt', new Blob([text], { type: 'text/plain' }));
  }
  if (!isOf(tokens, 'Uint32Array')) throw badOption(`${path}.tokens`, 'a Uint32Array', tokens);
  // The file extension tells the core the type of the bytes, including when the run is resumed from storage.
  return blobSpec(`${String(name) || 'data'}.tokens`, new Blob([tokens.slice()]));
}

/** Reads one file of training data. */
async function toFile(input: DataFile, path: string, signal?: AbortSignal): Promise<SourceSpec> {
  const how = {
    path,
    signal,
    unnamed: 'text.txt',
    expected: `${EXPECTED}, { text }, { tokens } or a list of rows`,
  };
  if (typeof input === 'string') {
    if (isAddress(input)) return reading(how, addressed(input, path));
    // A text could be the data themselves.
    throw badOption(
      path,
      'an address without white space that begins with https:, http:, hf:, / or ./, or { text } for a text to learn',
      input,
    );
  }
  if (typeof input !== 'object' || input === null) throw badOption(path, how.expected, input);
  const source = inline(input, path) ?? (await reading(how, described(input, how)));
  if (source.kind !== 'blob') return source;
  const { name, blob } = source;
  // Bytes from any other kind of input are already a copy.
  if (!isOf(input, 'Blob') && !can(input, 'getFile')) return source;
  if (blob.size === 0)
    throw fault(
      'data.empty',
      {
        artifact: escaped(name),
        hint: 'if it was deleted or moved after it was chosen, choose it again',
      },
      { path },
    );
  if (blob.size > COPIED_BYTES) return source;
  const copy = gathered(
    blob.size,
    async (at, length) => new Uint8Array(await blob.slice(at, at + length).arrayBuffer()),
    signal,
  );
  const gone = (thrown: unknown): never => {
    if (thrown instanceof TabtuneError) throw thrown;
    throw fault(
      'source.read',
      {
        subject: escaped(name),
        found: 'it was changed, deleted or moved after it was chosen',
        hint: 'choose it again',
      },
      { path, reason: String(thrown) },
      thrown,
    );
  };
  return blobSpec(name, await reading(how, copy.catch(gone)));
}

/**
 * Returns the text files of a folder that are not empty, sorted by name. `passedOver` receives the names of its other entries, except those that
 * begin with a dot (hidden files).
 */
async function textsOf(
  folder: FileSystemDirectoryHandle,
  path: string,
  passedOver: string[],
): Promise<FileSystemFileHandle[]> {
  const texts: [string, FileSystemFileHandle][] = [];
  const others: string[] = [];
  for await (const [name, entry] of folder.entries()) {
    if (name.startsWith('.')) continue;
    const file = entry.kind === 'file' && /\.(txt|md)$/i.test(name) ? entry : undefined;
    if (file && (await file.getFile()).size > 0) texts.push([name, file]);
    else others.push(name);
  }
  if (texts.length === 0)
    throw badOption(
      path,
      'a folder with .txt or .md files, and files of other forms one by one',
      others.length === 0 ? 'an empty one' : `one with ${others.sort().slice(0, 5).join(', ')}`,
    );
  passedOver.push(...others);
  return texts.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, file]) => file);
}

const isWeighted = (input: unknown): input is WeightedData =>
  brandOf(input) === 'Object' && Object.hasOwn(Object(input) as object, 'files');

interface Part {
  /** A file, or the rows of a list. */
  given: { file: DataFile } | { rows: readonly unknown[] };
  path: string;
  weight: number;
}

async function parts(
  input: DataInput,
  path: string,
  weight: number,
  passedOver: string[],
): Promise<Part[]> {
  if (Array.isArray(input) || isOf(input, 'FileList')) {
    const list = [...(input as ArrayLike<DataFile> & Iterable<DataFile>)];
    if (list.length === 0) throw badOption(path, 'at least one file or row', 'none');
    if (areRows(list, path)) return [{ given: { rows: list }, path, weight }];
    return (
      await Promise.all(list.map((part, at) => parts(part, `${path}[${at}]`, weight, passedOver)))
    ).flat();
  }
  if (isWeighted(input)) {
    const { files, weight: share = 1 }: { files?: unknown; weight?: unknown } = ownFields(input);
    positive(share, `${path}.weight`);
    return parts(files as DataInput, `${path}.files`, Number(share), passedOver);
  }
  if (isFolder(input))
    return (await textsOf(input, path, passedOver)).map((file) => ({
      given: { file },
      path,
      weight,
    }));
  return [{ given: { file: input as DataFile }, path, weight }];
}

/** @internal Returns the first `bytes` bytes of a File or Blob, and whether more follow. */
export function beginningOf(
  data: DataInput,
  bytes: number | undefined,
): { read: DataInput; partial: boolean } {
  if (bytes === undefined) return { read: data, partial: false };
  positiveInteger(bytes, 'bytes');
  if (!isOf(data, 'Blob')) throw badOption('bytes', 'this only with one File or Blob', data);
  const partial = data.size > bytes;
  return {
    read: partial ? new File([data.slice(0, bytes)], isOf(data, 'File') ? data.name : '') : data,
    partial,
  };
}

/** @internal Training data in the form in which they are sent to the worker. */
export interface GivenData {
  spec: DataSpec;
  /** Name under which a person knows the data. */
  name: string;
  /** How often the rows of each file occur in one epoch; undefined if every weight is 1. */
  weights: number[] | undefined;
}

/** @internal Adds the weights of the data to checked settings of a run; giving them in both places is an error. */
export function withWeights(settings: Values, weights: number[] | undefined): Values {
  if (weights === undefined) return settings;
  if (settings['data_weights'] !== undefined)
    throw badOption('dataWeights', 'weights here or with the files of data', 'both');
  return { ...settings, data_weights: weights };
}

/** Names files of one name by their folders or, where these are unknown, by their places, so that a report can tell them apart. */
function distinct(files: SourceSpec[], inputs: Part[]): SourceSpec[] {
  return files.map((spec, at) => {
    if (files.every(({ name }, other) => other === at || name !== spec.name)) return spec;
    const given = inputs[at]?.given;
    const input = given && 'file' in given ? given.file : undefined;
    // Node's files have no such key.
    const { webkitRelativePath: path = '' }: { webkitRelativePath?: string } = isOf(input, 'File')
      ? input
      : {};
    return { ...spec, name: path === '' ? `${at + 1}/${spec.name}` : path };
  });
}

/** @internal Reads training and validation data. Small files are copied. */
export async function toData(
  input: DataInput,
  validation: DataInput | undefined,
  signal?: AbortSignal,
): Promise<GivenData> {
  const passedOver: string[] = [];
  const listed = await parts(input, 'data', 1, passedOver);
  const evaluated =
    validation === undefined ? [] : await parts(validation, 'validationData', 1, passedOver);
  const lists = new Map<string, string>();
  const read = async (list: Part[], rows: string): Promise<SourceSpec[]> => {
    const specs = list.map(async ({ given, path }) =>
      'file' in given
        ? toFile(given.file, path, signal)
        : blobSpec(rows, await jsonLines(given.rows, path, signal)),
    );
    const named = distinct(await Promise.all(specs), list);
    for (const [at, { given, path }] of list.entries())
      if ('rows' in given) lists.set(named[at]?.name ?? '', path);
    return named;
  };
  const files = await read(listed, 'rows.jsonl');
  const kept = await read(evaluated, 'validation-rows.jsonl');
  if (evaluated.some(({ weight }) => weight !== 1))
    throw badOption('validationData', 'files without a weight', 'a weight');
  const weights = listed.some(({ weight }) => weight !== 1)
    ? listed.map(({ weight }) => weight)
    : undefined;
  const several = files.findIndex(({ kind, name }) => kind === 'hub' && !/\.\w+$/.test(name));
  if (weights && several >= 0)
    throw badOption(
      listed[several]?.path ?? 'data',
      'a file of the data set with a weight',
      'all of it',
    );
  const [first] = files;
  const name = `${first?.name ?? ''}${files.length > 1 ? ` and ${files.length - 1} more` : ''}`;
  const spec = { files, validation: kept, passedOver: passedOver.sort() };
  keepLists(spec, lists);
  return { spec, name, weights };
}
