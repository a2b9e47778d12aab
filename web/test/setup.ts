/** Features of a worker that Node lacks: IndexedDB, a Blob that can be read synchronously, and its reader. */
import 'fake-indexeddb/auto';

import { PAGE_CODES } from '../src/protocol/generated/page-codes.js';
import { WORKER_CODES } from '../src/protocol/generated/worker-codes.js';
import { addCodes } from '../src/protocol/sentence.js';

const bytesOf = (part: BlobPart): Uint8Array => {
  if (typeof part === 'string') return new TextEncoder().encode(part);
  if (part instanceof MemoryBlob) return part.content;
  if (part instanceof ArrayBuffer) return new Uint8Array(part);
  if (ArrayBuffer.isView(part))
    return new Uint8Array(part.buffer, part.byteOffset, part.byteLength);
  throw new TypeError('a Blob of another kind');
};

class MemoryBlob {
  readonly content: Uint8Array<ArrayBuffer>;
  readonly type: string;
  constructor(parts: BlobPart[] = [], options: BlobPropertyBag = {}) {
    const pieces = parts.map(bytesOf);
    this.content = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.byteLength, 0));
    let at = 0;
    for (const piece of pieces) {
      this.content.set(piece, at);
      at += piece.byteLength;
    }
    this.type = options.type ?? '';
  }
  get size(): number {
    return this.content.byteLength;
  }
  slice(start = 0, end = this.size): MemoryBlob {
    return new MemoryBlob([this.content.slice(start, end)]);
  }
  async arrayBuffer(): Promise<ArrayBuffer> {
    return this.content.slice().buffer;
  }
  async text(): Promise<string> {
    return new TextDecoder().decode(this.content);
  }
}

class MemoryFile extends MemoryBlob {
  constructor(
    parts: BlobPart[],
    readonly name: string,
  ) {
    super(parts);
  }
}

class MemoryReader {
  readAsArrayBuffer(blob: MemoryBlob): ArrayBuffer {
    return blob.content.slice().buffer;
  }
}

Object.assign(globalThis, { Blob: MemoryBlob, File: MemoryFile, FileReaderSync: MemoryReader });
// Tests of single modules do not load the entry points, which do this.
addCodes(PAGE_CODES);
addCodes(WORKER_CODES);
