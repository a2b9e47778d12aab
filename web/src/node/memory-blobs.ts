/** Blobs that can be read synchronously, as a worker of a browser reads all Blobs: Node has none. */
import { Buffer } from 'node:buffer';

import { isOf } from '../protocol/brand.js';

export const PlatformBlob = globalThis.Blob;
/** Classes of Node's own realm, in which it clones and hashes: Vitest puts those of jsdom in their place. */
export const NodeBytes = Object.getPrototypeOf(Buffer) as Uint8ArrayConstructor;
export const NodeBuffer = new NodeBytes().buffer.constructor as ArrayBufferConstructor;

/** A Blob whose bytes are at hand. */
interface Held {
  readonly content: Uint8Array<ArrayBuffer>;
}
const isHeld = (part: unknown): part is Blob & Held =>
  part instanceof PlatformBlob && 'content' in part;

const bytesOf = (part: BlobPart): Uint8Array => {
  if (typeof part === 'string') return new TextEncoder().encode(part);
  if (isHeld(part)) return part.content;
  if (isOf(part, 'Blob')) throw new TypeError('a Blob of another kind');
  return ArrayBuffer.isView(part)
    ? new NodeBytes(part.buffer, part.byteOffset, part.byteLength)
    : new NodeBytes(part);
};

/** A Blob of the platform that keeps its bytes. */
export class MemoryBlob extends PlatformBlob implements Held {
  readonly content: Uint8Array<ArrayBuffer>;
  constructor(parts: BlobPart[] = [], options: BlobPropertyBag = {}) {
    const pieces = parts.map(bytesOf);
    const content = new NodeBytes(pieces.reduce((sum, piece) => sum + piece.byteLength, 0));
    let at = 0;
    for (const piece of pieces) {
      content.set(piece, at);
      at += piece.byteLength;
    }
    super([content], options);
    this.content = content;
  }
  override slice(start = 0, end = this.size, type = ''): MemoryBlob {
    return new MemoryBlob([this.content.slice(start, end)], { type });
  }
  override async arrayBuffer(): Promise<ArrayBuffer> {
    return this.content.slice().buffer;
  }
  override async text(): Promise<string> {
    return new TextDecoder().decode(this.content);
  }
}

export class MemoryFile extends MemoryBlob {
  readonly lastModified: number;
  readonly webkitRelativePath = '';
  constructor(
    parts: BlobPart[],
    readonly name: string,
    options: FilePropertyBag = {},
  ) {
    super(parts, options);
    this.lastModified = options.lastModified ?? Date.now();
  }
  get [Symbol.toStringTag](): string {
    return 'File';
  }
}

/** Reads Blobs whose bytes are at hand. */
export class MemoryReader {
  readAsArrayBuffer(blob: Blob): ArrayBuffer {
    if (isHeld(blob)) return blob.content.slice().buffer;
    throw new TypeError('only files that are given can be read here, and none of a folder');
  }
}
