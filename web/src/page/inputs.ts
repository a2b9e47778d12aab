/** Turns inputs of a caller into values that can be sent to the worker. Of files only names and first bytes are read here, of small data all bytes. */
import { naturalNumber, words } from './checks.js';
import { brandOf, isOf } from '../protocol/brand.js';
import { aborted, badOption, fault, TabtuneError } from '../protocol/errors.js';
import { unlessAborted } from '../protocol/abort.js';
import type { SourceSpec } from '../protocol/protocol.js';

/** A source with reads of its own, for example over a file system of the caller's. */
export interface RangeReader {
  name: string;
  size: number;
  read(offset: number, length: number): Promise<Uint8Array> | Uint8Array;
}
export type Input = File | Blob | URL | Request | Response | ArrayBuffer | Uint8Array | RangeReader | FileSystemFileHandle;
/** Files of one model, adapter or export; of a folder those directly in it. */
export type FilesInput = Input | FileSystemDirectoryHandle | FileList | readonly (Input | FileSystemDirectoryHandle)[];

const READ_BYTES = 8 << 20;
/** @internal */
export const EXPECTED = 'a File, Blob, URL, Request, Response, ArrayBuffer, Uint8Array, FileSystemFileHandle or { name, size, read }';

/** Names for inputs without a name, by their first bytes. */
async function sniffed(first: Blob, otherwise: string): Promise<string> {
  const magic = new TextDecoder('latin1').decode(await first.slice(0, 4).arrayBuffer());
  return magic === 'GGUF' ? 'model.gguf' : otherwise;
}

/** The last part of an address; one that is encoded badly stands as it is. */
function lastSegment(url: string): string {
  const last = new URL(url).pathname.split('/').pop() ?? '';
  try {
    return decodeURIComponent(last) || 'download';
  } catch {
    return last;
  }
}

/** @internal Bytes that are read piece by piece, as a Blob, which the browser can move to disk. */
export async function gathered(size: number, read: (at: number, length: number) => Promise<Uint8Array> | Uint8Array, signal: AbortSignal | undefined): Promise<Blob> {
  const pieces: Blob[] = [];
  for (let at = 0; at < size; at += READ_BYTES) {
    if (signal?.aborted) throw aborted();
    pieces.push(new Blob([(await read(at, Math.min(READ_BYTES, size - at))).slice()]));
  }
  return new Blob(pieces);
}

/** @internal */
export type BlobSpec = Extract<SourceSpec, { kind: 'blob' }>;
/** @internal */
export const blobSpec = (name: string, blob: Blob): BlobSpec => ({ kind: 'blob', name, blob });

async function ofResponse(response: Response, { path, unnamed }: Pick<Reading, 'path' | 'unnamed'>): Promise<SourceSpec> {
  if (response.bodyUsed) throw badOption(path, 'a Response that was not read yet', 'one that was');
  if (response.type === 'opaque' || response.type === 'error') throw badOption(path, "a Response that may be read (mode 'cors')", `one of type ${response.type}`);
  if (!response.ok) throw fault('source.download', `${path}: the Response is HTTP ${response.status}`, { path });
  const blob = await response.blob();
  return blobSpec(response.url === '' ? await sniffed(blob, unnamed) : lastSegment(response.url), blob);
}

/** @internal How an input of the caller's is read. */
export interface Reading {
  path: string;
  /** What may stand there, in words. */
  expected: string;
  /** The name of bytes without one. */
  unnamed: string;
  signal: AbortSignal | undefined;
}

async function ofReader(reader: RangeReader, { path, signal }: Reading): Promise<SourceSpec> {
  words(reader.name, `${path}.name`);
  naturalNumber(reader.size, `${path}.size`);
  const blob = await gathered(reader.size, async (at, wanted) => {
    const bytes: unknown = await reader.read(at, wanted);
    if (!isOf(bytes, 'Uint8Array')) throw badOption(`${path}.read`, 'it to return a Uint8Array', bytes);
    if (bytes.byteLength !== wanted) throw badOption(`${path}.read`, `${wanted} bytes at ${at}`, bytes.byteLength);
    return bytes;
  }, signal);
  return blobSpec(reader.name, blob);
}

const ofUrl = (url: string, headers: string[][], credentials: RequestCredentials): SourceSpec => ({ kind: 'url', name: lastSegment(url), url, headers, credentials });

/** @internal Whether a value has this method. */
export const can = (input: object, method: string): boolean => typeof Reflect.get(input, method) === 'function';

/** @internal */
export async function described(input: object, how: Reading): Promise<SourceSpec> {
  if (isOf(input, 'Blob')) {
    return blobSpec(isOf(input, 'File') ? input.name : await sniffed(input, how.unnamed), input);
  }
  if (isOf(input, 'URL')) return ofUrl(input.href, [], 'same-origin');
  if (isOf(input, 'Request')) return ofUrl(input.url, [...input.headers].map(([key, value]) => [key, value]), input.credentials);
  if (isOf(input, 'Response')) return ofResponse(input, how);
  if (isOf(input, 'ArrayBuffer') || isOf(input, 'Uint8Array')) {
    // A copy, which the browser can move to disk: the worker may need it again, and the caller may change the original.
    const blob = new Blob([input]);
    return blobSpec(await sniffed(blob, how.unnamed), blob);
  }
  if (can(input, 'getFile')) {
    const blob = await (input as FileSystemFileHandle).getFile();
    // A stand-in for a handle cannot cross.
    return { ...blobSpec(blob.name, blob), handle: brandOf(input) === 'FileSystemFileHandle' ? (input as FileSystemFileHandle) : undefined };
  }
  if (can(input, 'read')) return ofReader(input as RangeReader, how);
  throw badOption(how.path, how.expected, input);
}

/** @internal What reading a caller's input throws is of that input. */
export async function reading<T>({ path, signal }: Pick<Reading, 'path' | 'signal'>, work: Promise<T>): Promise<T> {
  try {
    return await unlessAborted(work, signal);
  } catch (thrown) {
    if (thrown instanceof TabtuneError) throw thrown;
    throw fault('source.read', `cannot read ${path}: ${thrown instanceof Error ? thrown.message : String(thrown)}`, { path }, thrown);
  }
}

/** @internal Describes one file. A `RangeReader` cannot cross, so its bytes are gathered, range by range, into a Blob. */
export async function toSource(input: Input, path: string, unnamed: string, signal?: AbortSignal): Promise<SourceSpec> {
  const how = { path, unnamed, signal, expected: EXPECTED };
  if (typeof input !== 'object' || input === null) throw badOption(path, how.expected, input);
  return reading(how, described(input, how));
}

/** @internal */
export const isFolder = (input: unknown): input is FileSystemDirectoryHandle => Reflect.get(Object(input), 'kind') === 'directory';

async function filesOf(folder: FileSystemDirectoryHandle): Promise<FileSystemFileHandle[]> {
  const names: string[] = [];
  for await (const [name, { kind }] of folder.entries()) if (kind === 'file') names.push(name);
  return Promise.all(names.sort().map((name) => folder.getFileHandle(name)));
}

/** @internal */
export async function toSources(inputs: FilesInput, path: string, signal?: AbortSignal): Promise<SourceSpec[]> {
  const given: readonly (Input | FileSystemDirectoryHandle)[] = Array.isArray(inputs) ? inputs : isOf(inputs, 'FileList') ? [...inputs] : [inputs as Input];
  const parts = given.map(async (input) => (isFolder(input) ? filesOf(input) : [input]));
  const list = (await reading({ path, signal }, Promise.all(parts))).flat();
  if (list.length === 0) throw badOption(path, 'at least one file', 'none');
  return Promise.all(list.map((input, index) => toSource(input, `${path}[${index}]`, 'model.safetensors', signal)));
}
