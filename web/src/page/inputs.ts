/**
 * Turns a caller's inputs into values that can be sent to the worker. Only the names and first bytes of files are read here; small data are read
 * whole.
 */
import { naturalNumber, string } from './checks.js';
import { brandOf, isOf } from '../protocol/brand.js';
import { aborted, badOption, escaped, fault, messageOf, TabtuneError } from '../protocol/errors.js';
import { unlessAborted } from '../protocol/abort.js';
import type { SourceSpec } from '../protocol/protocol.js';
import { addressed, isAddressInput } from './names.js';
import type { AddressInput, HubOptions } from './names.js';
import { lastSegment, ofRequest } from './request-inputs.js';

/** A source with its own read function, for example over the caller's file system. */
export interface RangeReader {
  /** Name of the file. */
  name: string;
  /** Its size in bytes. */
  size: number;
  /** Returns exactly `length` bytes from `offset` on. */
  read(offset: number, length: number): Promise<Uint8Array> | Uint8Array;
}
/** An input of one file; a URL, an address or a Request is downloaded. `hf:owner/name` names all files of a repository. */
export type Input =
  | string
  | AddressInput
  | File
  | Blob
  | URL
  | Request
  | Response
  | ArrayBuffer
  | Uint8Array
  | RangeReader
  | FileSystemFileHandle;
/** Files of one model, adapter or export; from a folder, the files directly in it are used. */
export type FilesInput =
  Input | FileSystemDirectoryHandle | FileList | readonly (Input | FileSystemDirectoryHandle)[];

const READ_BYTES = 8 << 20;
/** @internal Description of the inputs that are accepted. */
export const EXPECTED =
  'a File, Blob, address, URL, { url, sha256 }, Request, Response, ArrayBuffer, Uint8Array, FileSystemFileHandle or { name, size, read }';

/** Returns a name for an unnamed input, chosen by its first bytes. */
async function sniffed(first: Blob, otherwise: string): Promise<string> {
  const magic = new TextDecoder('latin1').decode(await first.slice(0, 4).arrayBuffer());
  return magic === 'GGUF' ? 'model.gguf' : otherwise;
}

/** @internal Reads bytes piece by piece into a Blob, which the browser can move to disk. */
export async function gathered(
  size: number,
  read: (at: number, length: number) => Promise<Uint8Array> | Uint8Array,
  signal: AbortSignal | undefined,
): Promise<Blob> {
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

async function ofResponse(
  response: Response,
  { path, unnamed }: Pick<Reading, 'path' | 'unnamed'>,
): Promise<SourceSpec> {
  if (response.bodyUsed) throw badOption(path, 'a Response that was not read yet', 'one that was');
  if (response.type === 'opaque' || response.type === 'error')
    throw badOption(
      path,
      "a Response that may be read (mode 'cors')",
      `one of type ${response.type}`,
    );
  // A 206 is only a part of the file.
  if (response.status !== 200)
    throw fault(
      'source.download',
      { subject: path, found: `the Response is HTTP ${response.status}` },
      { path },
    );
  const blob = await response.blob();
  return blobSpec(
    response.url === '' ? await sniffed(blob, unnamed) : lastSegment(response.url),
    blob,
  );
}

/** @internal How a caller's input is read. */
export interface Reading {
  path: string;
  /** Description of the accepted inputs. */
  expected: string;
  /** Name for bytes that have none. */
  unnamed: string;
  signal: AbortSignal | undefined;
  /** Options of named files. */
  hub?: HubOptions | undefined;
}

async function ofReader(reader: RangeReader, { path, signal }: Reading): Promise<SourceSpec> {
  string(reader.name, `${path}.name`);
  naturalNumber(reader.size, `${path}.size`);
  const blob = await gathered(
    reader.size,
    async (at, wanted) => {
      const bytes: unknown = await reader.read(at, wanted);
      if (!isOf(bytes, 'Uint8Array'))
        throw badOption(`${path}.read`, 'a function that returns a Uint8Array', bytes);
      if (bytes.byteLength !== wanted)
        throw badOption(`${path}.read`, `${wanted} bytes at ${at}`, bytes.byteLength);
      return bytes;
    },
    signal,
  );
  return blobSpec(reader.name, blob);
}

/** @internal Returns whether a value has this method. */
export const can = (input: object, method: string): boolean =>
  typeof Reflect.get(input, method) === 'function';

/** @internal Describes one input as a source for the worker. */
export async function described(input: object, how: Reading): Promise<SourceSpec> {
  if (isOf(input, 'Blob')) {
    return blobSpec(isOf(input, 'File') ? input.name : await sniffed(input, how.unnamed), input);
  }
  if (isOf(input, 'URL') || isAddressInput(input)) return addressed(input, how.path, how.hub);
  if (isOf(input, 'Request')) return ofRequest(input, how.path);
  if (isOf(input, 'Response')) return ofResponse(input, how);
  if (isOf(input, 'ArrayBuffer') || isOf(input, 'Uint8Array')) {
    // The copy, which the browser can move to disk, keeps the bytes if the worker needs them again or the caller changes the original.
    const blob = new Blob([input]);
    return blobSpec(await sniffed(blob, how.unnamed), blob);
  }
  if (can(input, 'getFile')) {
    const blob = await (input as FileSystemFileHandle).getFile();
    // An object that merely imitates a handle cannot be sent to the worker.
    return {
      ...blobSpec(blob.name, blob),
      handle:
        brandOf(input) === 'FileSystemFileHandle' ? (input as FileSystemFileHandle) : undefined,
    };
  }
  if (can(input, 'read')) return ofReader(input as RangeReader, how);
  throw badOption(how.path, how.expected, input);
}

/** @internal Awaits the reading of a caller's input; an error that it throws names that input. */
export async function reading<T>(
  { path, signal }: Pick<Reading, 'path' | 'signal'>,
  work: Promise<T>,
): Promise<T> {
  try {
    return await unlessAborted(work, signal);
  } catch (thrown) {
    if (thrown instanceof TabtuneError) throw thrown;
    throw fault('source.read', { subject: path, found: messageOf(thrown) }, { path }, thrown);
  }
}

/** @internal Describes one file. A `RangeReader` cannot be sent to the worker, so its bytes are gathered into a Blob, range by range. */
export async function toSource(
  input: Input,
  path: string,
  unnamed: string,
  signal?: AbortSignal,
  hub?: HubOptions,
): Promise<SourceSpec> {
  const how = { path, unnamed, signal, hub, expected: EXPECTED };
  if (typeof input === 'string') return reading(how, addressed(input, path, hub));
  if (typeof input !== 'object' || input === null) throw badOption(path, how.expected, input);
  return reading(how, described(input, how));
}

/** @internal Returns whether an input is a folder. */
export const isFolder = (input: unknown): input is FileSystemDirectoryHandle =>
  Reflect.get(Object(input), 'kind') === 'directory';

/** Folder of a model's chat templates other than the main one. */
const MORE_TEMPLATES = 'additional_chat_templates';

/** A file of a folder or of a list, and how a message names it. */
interface Listed {
  input: Input;
  place: string;
}

async function filesOf(folder: FileSystemDirectoryHandle, ending = ''): Promise<Listed[]> {
  const names: string[] = [];
  let more: Listed[] = [];
  for await (const [name, { kind }] of folder.entries()) {
    if (kind === 'file' && name.endsWith(ending)) names.push(name);
    else if (kind === 'directory' && name === MORE_TEMPLATES)
      more = await filesOf(await folder.getDirectoryHandle(name), '.jinja');
  }
  const direct = names
    .sort()
    .map(async (name) => ({
      input: await folder.getFileHandle(name),
      place: `${folder.name}/${name}`,
    }));
  return [...(await Promise.all(direct)), ...more];
}

/** Returns how a message names a file of a list: by its path in the folder that was picked, or by its place in the list. */
function placeOf(input: unknown, otherwise: string): string {
  const path: unknown = isOf(input, 'File') && Reflect.get(input, 'webkitRelativePath');
  return (typeof path === 'string' && path) || otherwise;
}

/** Names that several files may have: those of hidden files, and of parts of a GGUF file, which are distinguished by their contents. */
const REPEATED = /^\.|\.gguf$/i;

/** Refuses files of one name, of which only the first would count. */
function refuseTwice(specs: readonly SourceSpec[], listed: readonly Listed[], path: string): void {
  const places = new Map<string, string[]>();
  specs.forEach((spec, at) => {
    const last = spec.name.replace(/^.*[/\\]/, '');
    places.set(last, [
      ...(places.get(last) ?? []),
      spec.kind === 'url' ? spec.url : (listed[at]?.place ?? ''),
    ]);
  });
  for (const [name, same] of places) {
    if (same.length > 1 && !REPEATED.test(name))
      throw fault(
        'source.duplicate',
        { subject: escaped(name), expected: escaped(same.join(', ')), found: same.length },
        { path },
      );
  }
}

/**
 * @internal Describes the files of one model, whose names must differ; from a folder, the files directly in it and the chat templates in a folder of
 * their own.
 */
export async function toSources(
  inputs: FilesInput,
  path: string,
  signal?: AbortSignal,
  hub?: HubOptions,
): Promise<SourceSpec[]> {
  const given: readonly (Input | FileSystemDirectoryHandle)[] = Array.isArray(inputs)
    ? inputs
    : isOf(inputs, 'FileList')
      ? [...inputs]
      : [inputs as Input];
  const parts = given.map(async (input, at) =>
    isFolder(input) ? filesOf(input) : [{ input, place: placeOf(input, `${path}[${at}]`) }],
  );
  const list = (await reading({ path, signal }, Promise.all(parts))).flat();
  if (list.length === 0) throw badOption(path, 'at least one file', 'none');
  const specs = await Promise.all(
    list.map(({ input }, index) =>
      toSource(input, `${path}[${index}]`, 'model.safetensors', signal, hub),
    ),
  );
  refuseTwice(specs, list, path);
  return specs;
}
