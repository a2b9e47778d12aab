/** Turns training data of a caller into files that can be sent to the worker. */
import { positive, positiveInteger, words } from './checks.js';
import { own } from './given.js';
import { brandOf, isOf } from '../protocol/brand.js';
import { badOption, escaped, fault, TabtuneError } from '../protocol/errors.js';
import type { DataSpec, SourceSpec } from '../protocol/protocol.js';
import { blobSpec, can, described, EXPECTED, gathered, isFolder, reading } from './inputs.js';
import type { BlobSpec, Input } from './inputs.js';

/** A file of training data (text, JSON lines, JSON, CSV, TSV or Parquet, found by its contents, also packed by gzip; or `.tokens`), the text itself, or its token ids. */
export type DataFile = Input | { text: string; name?: string | undefined } | { tokens: Uint32Array; name?: string | undefined };
/** A part of a mixture: rows that come `weight` times in an epoch, or so large a share of them. A folder is its .txt and .md files. */
export interface WeightedData {
  files: DataFile | FileSystemDirectoryHandle | readonly (DataFile | FileSystemDirectoryHandle)[];
  /** 1 */
  weight?: number | undefined;
}
/** Training data: one file, or several. */
export type DataInput = DataFile | FileSystemDirectoryHandle | FileList | WeightedData | readonly (DataFile | FileSystemDirectoryHandle | WeightedData)[];

/** Files up to this size are copied: one that is edited or deleted later changes nothing. */
const COPIED_BYTES = 64 << 20;

/** The data that stand in an object themselves, if it is one of those. */
function inline(input: object, path: string): BlobSpec | undefined {
  if (brandOf(input) !== 'Object' || !(Object.hasOwn(input, 'text') || Object.hasOwn(input, 'tokens'))) return undefined;
  const { text, tokens, name = '' }: { text?: unknown; tokens?: unknown; name?: unknown } = own(input);
  words(name, `${path}.name`);
  if (Object.hasOwn(input, 'text')) {
    if (typeof text !== 'string') throw badOption(`${path}.text`, 'a string', text);
    return blobSpec(String(name) || 'text.txt', new Blob([text], { type: 'text/plain' }));
  }
  if (!isOf(tokens, 'Uint32Array')) throw badOption(`${path}.tokens`, 'a Uint32Array', tokens);
  // The ending tells the core what the bytes are, also when the run is resumed from storage.
  return blobSpec(`${String(name) || 'data'}.tokens`, new Blob([tokens.slice()]));
}

/** One file of training data. */
async function toFile(input: DataFile, path: string, signal?: AbortSignal): Promise<SourceSpec> {
  const how = { path, signal, unnamed: 'text.txt', expected: `${EXPECTED}, { text } or { tokens }` };
  if (typeof input !== 'object' || input === null) throw badOption(path, how.expected, input);
  const source = inline(input, path) ?? (await reading(how, described(input, how)));
  if (source.kind !== 'blob') return source;
  const { name, blob } = source;
  // Bytes that came otherwise are a copy already.
  if (!isOf(input, 'Blob') && !can(input, 'getFile')) return source;
  if (blob.size === 0) throw fault('data.empty', `${escaped(name)} is empty; or it was deleted or moved after it was chosen: choose it again`, { path });
  if (blob.size > COPIED_BYTES) return source;
  const copy = gathered(blob.size, async (at, length) => new Uint8Array(await blob.slice(at, at + length).arrayBuffer()), signal);
  const gone = (thrown: unknown): never => {
    if (thrown instanceof TabtuneError) throw thrown;
    throw fault('source.read', `cannot read ${escaped(name)}: it was changed, deleted or moved after it was chosen. Choose it again.`, { path, reason: String(thrown) }, thrown);
  };
  return blobSpec(name, await reading(how, copy.catch(gone)));
}

/** The texts of a folder, by their names. `passedOver` gets the names of its other entries, but of what begins with a dot, which is not shown to people. */
async function textsOf(folder: FileSystemDirectoryHandle, path: string, passedOver: string[]): Promise<FileSystemFileHandle[]> {
  const names: string[] = [];
  for await (const [name, { kind }] of folder.entries()) if (!name.startsWith('.')) (kind === 'file' && /\.(txt|md)$/i.test(name) ? names : passedOver).push(name);
  if (names.length === 0) throw badOption(path, 'a folder with .txt or .md files', 'one without');
  return Promise.all(names.sort().map((name) => folder.getFileHandle(name)));
}

const isWeighted = (input: unknown): input is WeightedData => brandOf(input) === 'Object' && Object.hasOwn(Object(input) as object, 'files');

interface Part {
  file: DataFile;
  path: string;
  weight: number;
}

async function parts(input: DataInput, path: string, weight: number, passedOver: string[]): Promise<Part[]> {
  if (Array.isArray(input) || isOf(input, 'FileList')) {
    const list = [...(input as ArrayLike<DataFile> & Iterable<DataFile>)];
    if (list.length === 0) throw badOption(path, 'at least one file', 'none');
    return (await Promise.all(list.map((part, at) => parts(part, `${path}[${at}]`, weight, passedOver)))).flat();
  }
  if (isWeighted(input)) {
    const { files, weight: share = 1 }: { files?: unknown; weight?: unknown } = own(input);
    positive(share, `${path}.weight`);
    return parts(files as DataInput, `${path}.files`, Number(share), passedOver);
  }
  if (isFolder(input)) return (await textsOf(input, path, passedOver)).map((file) => ({ file, path, weight }));
  return [{ file: input as DataFile, path, weight }];
}

/** @internal The first `bytes` of a File or Blob, and whether something follows them. */
export function beginningOf(data: DataInput, bytes: number | undefined): { read: DataInput; partial: boolean } {
  if (bytes === undefined) return { read: data, partial: false };
  positiveInteger(bytes, 'bytes');
  if (!isOf(data, 'Blob')) throw badOption('bytes', 'it with one File or Blob', data);
  const partial = data.size > bytes;
  return { read: partial ? new File([data.slice(0, bytes)], isOf(data, 'File') ? data.name : '') : data, partial };
}

/** @internal Data as they are sent. */
export interface GivenData {
  spec: DataSpec;
  /** The name by which a person knows them. */
  name: string;
  /** How often the rows of each file come in an epoch; none where all are 1. */
  weights: number[] | undefined;
}

/** @internal The settings of a run with the weights of its data, which may be given in one place alone. */
export function withWeights<T extends { dataWeights?: number[] | undefined }>(settings: T, weights: number[] | undefined): T {
  if (weights === undefined) return settings;
  if (settings.dataWeights !== undefined) throw badOption('dataWeights', 'weights here or beside the files of data', 'both');
  return { ...settings, dataWeights: weights };
}

/** @internal Training data, and those that are evaluated. Small files are copied. */
export async function toData(input: DataInput, validation: DataInput | undefined, signal?: AbortSignal): Promise<GivenData> {
  const passedOver: string[] = [];
  const listed = await parts(input, 'data', 1, passedOver);
  const evaluated = validation === undefined ? [] : await parts(validation, 'validationData', 1, passedOver);
  const read = (list: Part[]): Promise<SourceSpec[]> => Promise.all(list.map(({ file, path }) => toFile(file, path, signal)));
  const [files, kept] = [await read(listed), await read(evaluated)];
  if (evaluated.some(({ weight }) => weight !== 1)) throw badOption('validationData', 'files without a weight', 'a weight');
  const weights = listed.some(({ weight }) => weight !== 1) ? listed.map(({ weight }) => weight) : undefined;
  const [first] = files;
  const name = `${first?.name ?? ''}${files.length > 1 ? ` and ${files.length - 1} more` : ''}`;
  return { spec: { files, validation: kept, passedOver: passedOver.sort() }, name, weights };
}
