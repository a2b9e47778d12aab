/** Blobs of the main thread, which alone can read those of files, in the thread of the worker, which waits for their bytes. */
import type { MessagePort } from 'node:worker_threads';
import { receiveMessageOnPort } from 'node:worker_threads';

import { isOf } from '../protocol/brand.js';
import { PlatformBlob } from './memory-blobs.js';

/** The place of a Blob in a message. */
const PLACE = 'tabtune blob';
interface Place {
  [PLACE]: number;
  size: number;
  type: string;
}

/** The connection by which bytes are requested: `state` becomes 1 when the reply is there. */
export interface Reads {
  port: MessagePort;
  state: Int32Array;
}
interface Request {
  id: number;
  start: number;
  end: number;
}
type Reply = { bytes: ArrayBuffer } | { name: string; message: string };

/** Keeps the Blobs of a worker's messages, and reads them at its request. */
export class GivenBlobs {
  readonly #blobs: Blob[] = [];

  constructor({ port, state }: Reads) {
    port.on('message', ({ id, start, end }: Request) => {
      const read = this.#blobs[id]?.slice(start, end).arrayBuffer() ?? Promise.reject(new Error());
      const answer = (reply: Reply, transfer: ArrayBuffer[]): void => {
        port.postMessage(reply, transfer);
        Atomics.store(state, 0, 1);
        Atomics.notify(state, 0);
      };
      read.then(
        (bytes) => answer({ bytes }, [bytes]),
        (thrown: unknown) => {
          const { name, message } = thrown as Error;
          answer({ name, message }, []);
        },
      );
    });
  }

  /** Returns what takes the place of a part of a message. */
  readonly placed = (part: unknown): unknown => {
    if (!isOf(part, 'Blob')) return part;
    const place: Place = { [PLACE]: this.#blobs.push(part) - 1, size: part.size, type: part.type };
    return place;
  };
}

/** A Blob of the main thread, or a part of one. */
class RemoteBlob extends PlatformBlob {
  constructor(
    private readonly reads: Reads,
    private readonly id: number,
    private readonly start: number,
    private readonly end: number,
    type: string,
  ) {
    super([], { type });
    Object.defineProperty(this, 'size', { value: end - start });
  }

  get content(): Uint8Array<ArrayBuffer> {
    const { port, state } = this.reads;
    const request: Request = { id: this.id, start: this.start, end: this.end };
    Atomics.store(state, 0, 0);
    port.postMessage(request);
    Atomics.wait(state, 0, 0);
    const reply = receiveMessageOnPort(port)?.message as Reply;
    if ('bytes' in reply) return new Uint8Array(reply.bytes);
    throw new DOMException(reply.message, reply.name);
  }

  override slice(start = 0, end = this.size, type = ''): RemoteBlob {
    const last = Math.min(this.start + end, this.end);
    return new RemoteBlob(this.reads, this.id, Math.min(this.start + start, last), last, type);
  }
  override async arrayBuffer(): Promise<ArrayBuffer> {
    return this.content.buffer;
  }
  override async text(): Promise<string> {
    return new TextDecoder().decode(this.content);
  }
  override stream(): never {
    throw new TypeError('the Blobs of another thread have no streams');
  }
}

const isPlace = (part: object): part is Place => Object.hasOwn(part, PLACE);

/** Puts Blobs in the places of a message. */
export function withBlobs(message: unknown, reads: Reads): unknown {
  if (typeof message !== 'object' || message === null) return message;
  if (Array.isArray(message)) return message.map((part) => withBlobs(part, reads));
  if (Object.getPrototypeOf(message) !== Object.prototype) return message;
  if (isPlace(message)) return new RemoteBlob(reads, message[PLACE], 0, message.size, message.type);
  return Object.fromEntries(
    Object.entries(message).map(([key, part]) => [key, withBlobs(part, reads)]),
  );
}
