/**
 * SHA-256 (FIPS 180-4) of a stream. Browsers hash only what is whole in memory, and `checkpoint.json` of version 1 names one sum
 * for a file of any size.
 */
import { hex } from './chunks.js';

const BLOCK_BYTES = 64;

const primes = (count: number): number[] => {
  const found: number[] = [];
  for (let n = 2; found.length < count; n++) if (found.every((prime) => n % prime !== 0)) found.push(n);
  return found;
};
/** The first 32 bits of a number's fraction. */
const fraction = (value: number): number => Math.floor((value - Math.floor(value)) * 2 ** 32) | 0;
const ROUND = Int32Array.from(primes(64), (prime) => fraction(Math.cbrt(prime)));
const START = Int32Array.from(primes(8), (prime) => fraction(Math.sqrt(prime)));

export class Sha256 {
  readonly #state = START.slice();
  readonly #words = new Int32Array(64);
  readonly #rest = new Uint8Array(BLOCK_BYTES);
  #waiting = 0;
  #bytes = 0;

  update(bytes: Uint8Array): void {
    this.#bytes += bytes.byteLength;
    let at = 0;
    if (this.#waiting > 0) {
      at = Math.min(BLOCK_BYTES - this.#waiting, bytes.byteLength);
      this.#rest.set(bytes.subarray(0, at), this.#waiting);
      this.#waiting += at;
      if (this.#waiting < BLOCK_BYTES) return;
      this.#block(this.#rest, 0);
    }
    for (; at + BLOCK_BYTES <= bytes.byteLength; at += BLOCK_BYTES) this.#block(bytes, at);
    this.#rest.set(bytes.subarray(at));
    this.#waiting = bytes.byteLength - at;
  }

  /** Lower-case hex; nothing can follow. */
  finish(): string {
    const padding = new Uint8Array(((this.#waiting < 56 ? 56 : 120) - this.#waiting) + 8);
    padding[0] = 0x80;
    new DataView(padding.buffer).setBigUint64(padding.byteLength - 8, BigInt(this.#bytes) * 8n);
    this.update(padding);
    const digest = new DataView(new ArrayBuffer(32));
    this.#state.forEach((word, index) => digest.setInt32(4 * index, word));
    return hex(new Uint8Array(digest.buffer));
  }

  #block(bytes: Uint8Array, offset: number): void {
    const w = this.#words;
    const view = new DataView(bytes.buffer, bytes.byteOffset + offset, BLOCK_BYTES);
    for (let t = 0; t < 16; t++) w[t] = view.getInt32(4 * t);
    for (let t = 16; t < 64; t++) {
      const x = w[t - 15] ?? 0;
      const y = w[t - 2] ?? 0;
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      w[t] = ((w[t - 16] ?? 0) + s0 + (w[t - 7] ?? 0) + s1) | 0;
    }
    let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = this.#state;
    for (let t = 0; t < 64; t++) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + (ROUND[t] ?? 0) + (w[t] ?? 0)) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    for (const [index, word] of [a, b, c, d, e, f, g, h].entries()) this.#state[index] = ((this.#state[index] ?? 0) + word) | 0;
  }
}
