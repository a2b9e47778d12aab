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
  for (let bit = 0; bit < 8; bit++) remainder = remainder & 1 ? (remainder >>> 1) ^ 0xedb88320 : remainder >>> 1;
  return remainder;
});

/** Returns numbers as little-endian bytes; `widths` has a digit for each. */
const packed = (widths: string, ...values: number[]): number[] =>
  values.flatMap((value, at) => Array.from({ length: Number(widths[at]) }, (_, byte) => (value >>> (8 * byte)) & 255));

interface Entry {
  name: number[];
  offset: number;
  /** CRC-32, stored and real size. */
  facts: number[];
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
    await this.#write([...packed('42222244422', 0x04034b50, VERSION, FLAGS, 0, 0, DATE, 0, 0, 0, name.length, 0), ...name]);
    return {
      write: async (bytes) => {
        for (const byte of new Uint8Array(bytes)) sum = (REMAINDERS[(sum ^ byte) & 255] ?? 0) ^ (sum >>> 8);
        size += bytes.byteLength;
        await this.#write(bytes);
      },
      close: async () => {
        const facts = [~sum, size, size];
        this.#entries.push({ name, offset, facts });
        await this.#write(packed('4444', 0x08074b50, ...facts));
      },
      abort: async () => undefined,
    };
  };

  async end(): Promise<void> {
    const start = this.#offset;
    const { length } = this.#entries;
    for (const { name, offset, facts } of this.#entries) {
      await this.#write([
        ...packed('42222224442222244', 0x02014b50, VERSION, VERSION, FLAGS, 0, 0, DATE, ...facts, name.length, 0, 0, 0, 0, 0, offset),
        ...name,
      ]);
    }
    await this.#write(packed('42222442', 0x06054b50, 0, 0, length, length, this.#offset - start, start, 0));
  }
}
