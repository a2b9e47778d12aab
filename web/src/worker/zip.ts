/** A zip archive written as its files arrive, stored without compression, since weights do not compress (PKWARE's APPNOTE.TXT 6.3.10). */
import { exactBuffer } from './storage/chunks.js';
import type { Sink } from './storage/sinks.js';

/** Sizes and checksum follow the bytes (bit 3), names are UTF-8 (bit 11). */
const FLAGS = 0x0808;
/** 1 January 1980, so that equal files give equal archives. */
const DATE = 0x21;
const VERSION = 20;

/** Remainders of all bytes, for CRC-32 with the polynomial 0xEDB88320. */
const REMAINDERS = Uint32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte;
  for (let bit = 0; bit < 8; bit++)
    remainder = remainder & 1 ? (remainder >>> 1) ^ 0xedb88320 : remainder >>> 1;
  return remainder;
});

/** Widths in bytes of the fields of a header, in their order. */
type Layout = Readonly<Record<string, 2 | 4>>;

/** Fields that both the descriptor after a file and its entry in the directory have. */
const CONTENT = { checksum: 4, storedSize: 4, size: 4 } as const;
const DESCRIPTOR = { signature: 4, ...CONTENT } as const;
const READING = {
  neededVersion: 2,
  flags: 2,
  method: 2,
  time: 2,
  date: 2,
  ...CONTENT,
  nameLength: 2,
  extraLength: 2,
} as const;
const LOCAL_HEADER = { signature: 4, ...READING } as const;
const DIRECTORY_ENTRY = {
  signature: 4,
  writerVersion: 2,
  ...READING,
  commentLength: 2,
  disk: 2,
  internalAttributes: 2,
  externalAttributes: 4,
  offset: 4,
} as const;
const DIRECTORY_END = {
  signature: 4,
  disk: 2,
  directoryDisk: 2,
  entriesOnDisk: 2,
  entries: 2,
  directorySize: 4,
  directoryOffset: 4,
  commentLength: 2,
} as const;

/** The bytes of a header, little-endian; a field without a value is 0. */
const packed = <L extends Layout>(layout: L, values: { [Field in keyof L]?: number }): number[] =>
  Object.entries(layout).flatMap(([field, width]) =>
    Array.from({ length: width }, (_, byte) => ((values[field] ?? 0) >>> (8 * byte)) & 255),
  );

type Content = Record<keyof typeof CONTENT, number>;

interface Entry {
  name: number[];
  offset: number;
  content: Content;
}

/** Writes the opened files into `out`, one after the other; `out` stays open. The archive must be smaller than 4 GiB. */
export class Zip {
  #offset = 0;
  readonly #entries: Entry[] = [];

  constructor(private readonly out: Sink) {}

  async #write(bytes: ArrayBuffer | number[]): Promise<void> {
    const buffer = Array.isArray(bytes) ? exactBuffer(Uint8Array.from(bytes)) : bytes;
    // Writing may transfer the buffer.
    this.#offset += buffer.byteLength;
    await this.out.write(buffer);
  }

  /** An arrow function, because it is passed as a callback. */
  readonly open = async (file: string): Promise<Sink> => {
    const name = [...new TextEncoder().encode(file)];
    const offset = this.#offset;
    let sum = -1;
    let size = 0;
    const header = {
      signature: 0x04034b50,
      neededVersion: VERSION,
      flags: FLAGS,
      date: DATE,
      nameLength: name.length,
    };
    await this.#write([...packed(LOCAL_HEADER, header), ...name]);
    return {
      write: async (bytes) => {
        for (const byte of new Uint8Array(bytes))
          sum = (REMAINDERS[(sum ^ byte) & 255] ?? 0) ^ (sum >>> 8);
        size += bytes.byteLength;
        await this.#write(bytes);
      },
      close: async () => {
        const content = { checksum: ~sum, storedSize: size, size };
        this.#entries.push({ name, offset, content });
        await this.#write(packed(DESCRIPTOR, { signature: 0x08074b50, ...content }));
      },
      abort: async () => undefined,
    };
  };

  async end(): Promise<void> {
    const start = this.#offset;
    const { length } = this.#entries;
    for (const { name, offset, content } of this.#entries) {
      const header = {
        signature: 0x02014b50,
        writerVersion: VERSION,
        neededVersion: VERSION,
        flags: FLAGS,
        date: DATE,
        ...content,
        nameLength: name.length,
        offset,
      };
      await this.#write([...packed(DIRECTORY_ENTRY, header), ...name]);
    }
    const end = {
      signature: 0x06054b50,
      entriesOnDisk: length,
      entries: length,
      directorySize: this.#offset - start,
      directoryOffset: start,
    };
    await this.#write(packed(DIRECTORY_END, end));
  }
}
