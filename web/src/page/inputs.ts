/** Turns inputs of a caller into values that can be sent to the worker. Only names and first bytes are read here. */
import { badOption } from '../protocol/errors.js';
import type { SourceSpec } from '../protocol/protocol.js';

/** A source with reads of its own, for example over a file system of the caller's. */
export interface RangeReader {
  name: string;
  size: number;
  read(offset: number, length: number): Promise<Uint8Array> | Uint8Array;
}
export type Input = File | Blob | URL | Request | ArrayBuffer | RangeReader | FileSystemFileHandle;
/** Files of one model, adapter or export; of a folder those directly in it. */
export type FilesInput = Input | FileSystemDirectoryHandle | readonly (Input | FileSystemDirectoryHandle)[];
/** Training data: a text, JSONL or token file (by its name: `.jsonl`, `.tokens`), the text itself, or its token ids. */
export type DataInput = Input | { text: string; name?: string } | { tokens: Uint32Array; name?: string };

const READ_BYTES = 8 << 20;
const EXPECTED = 'a File, Blob, URL, Request, ArrayBuffer, FileSystemFileHandle or { name, size, read }';

/** Names for inputs without a name, by their first bytes. */
async function sniffed(first: Blob, otherwise: string): Promise<string> {
  const magic = new TextDecoder('latin1').decode(await first.slice(0, 4).arrayBuffer());
  return magic === 'GGUF' ? 'model.gguf' : otherwise;
}

const lastSegment = (url: string): string => decodeURIComponent(new URL(url).pathname.split('/').pop() ?? '') || 'download';

/** @internal Describes one input. A `RangeReader` cannot cross, so its bytes are gathered, range by range, into a Blob. */
export async function toSource(input: DataInput, path: string, unnamed: string): Promise<SourceSpec> {
  if (typeof input !== 'object' || input === null) throw badOption(path, EXPECTED, input);
  if ('getFile' in input) {
    const blob = await input.getFile();
    // A stand-in for a handle cannot cross.
    return { kind: 'blob', name: blob.name, blob, handle: typeof FileSystemFileHandle !== 'undefined' && input instanceof FileSystemFileHandle ? input : undefined };
  }
  if (typeof File !== 'undefined' && input instanceof File) return { kind: 'blob', name: input.name, blob: input };
  if (input instanceof Blob) return { kind: 'blob', name: await sniffed(input, unnamed), blob: input };
  if (input instanceof URL) return { kind: 'url', name: lastSegment(input.href), url: input.href, headers: [], credentials: 'same-origin' };
  if (input instanceof Request) {
    return { kind: 'url', name: lastSegment(input.url), url: input.url, headers: [...input.headers].map(([key, value]) => [key, value]), credentials: input.credentials };
  }
  if (input instanceof ArrayBuffer) {
    // A copy, which the browser can move to disk: the worker may need it again, and the caller may change the original.
    const blob = new Blob([input]);
    return { kind: 'blob', name: await sniffed(blob, unnamed), blob };
  }
  if ('text' in input) return { kind: 'blob', name: input.name ?? 'text.txt', blob: new Blob([input.text], { type: 'text/plain' }) };
  if ('tokens' in input) {
    if (!(input.tokens instanceof Uint32Array)) throw badOption(`${path}.tokens`, 'a Uint32Array', input.tokens);
    // The ending tells the core what the bytes are, also when the run is resumed from storage.
    return { kind: 'blob', name: `${input.name ?? 'data'}.tokens`, blob: new Blob([input.tokens.slice()]) };
  }
  if ('read' in input && typeof input.read === 'function') {
    const pieces: Blob[] = [];
    for (let at = 0; at < input.size; at += READ_BYTES) {
      const wanted = Math.min(READ_BYTES, input.size - at);
      const bytes = await input.read(at, wanted);
      if (bytes.byteLength !== wanted) throw badOption(`${path}.read`, `${wanted} bytes at ${at}`, bytes.byteLength);
      pieces.push(new Blob([bytes.slice()]));
    }
    return { kind: 'blob', name: input.name, blob: new Blob(pieces) };
  }
  throw badOption(path, EXPECTED, input);
}

/** @internal */
export async function toSources(inputs: FilesInput, path: string): Promise<SourceSpec[]> {
  const given: readonly (Input | FileSystemDirectoryHandle)[] = Array.isArray(inputs) ? inputs : [inputs];
  const list = (await Promise.all(given.map(async (input) => (isFolder(input) ? filesOf(input) : [input])))).flat();
  if (list.length === 0) throw badOption(path, 'at least one file', 'none');
  return Promise.all(list.map((input, index) => toSource(input, `${path}[${index}]`, 'model.safetensors')));
}

const isFolder = (input: Input | FileSystemDirectoryHandle): input is FileSystemDirectoryHandle => Reflect.get(Object(input), 'kind') === 'directory';

async function filesOf(folder: FileSystemDirectoryHandle): Promise<FileSystemFileHandle[]> {
  const names: string[] = [];
  for await (const [name, { kind }] of folder.entries()) if (kind === 'file') names.push(name);
  return Promise.all(names.sort().map((name) => folder.getFileHandle(name)));
}
