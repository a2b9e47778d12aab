/** SHA-256 of bytes that arrive piece by piece (FIPS 180-4): browsers compute only that of bytes in memory. */

/** Returns the first 32 bits of the fractional part of a root. */
const bits = (root: number): number => ((root - Math.floor(root)) * 2 ** 32) | 0;

const PRIMES: number[] = [];
for (let n = 2; PRIMES.length < 64; n += 1)
  if (PRIMES.every((prime) => n % prime !== 0)) PRIMES.push(n);
const K = Int32Array.from(PRIMES, (prime) => bits(Math.cbrt(prime)));
const INITIAL = PRIMES.slice(0, 8).map((prime) => bits(Math.sqrt(prime)));

export class RunningSha256 {
  readonly #state = Int32Array.from(INITIAL);
  readonly #words = new Int32Array(64);
  readonly #block = new Uint8Array(64);
  #filled = 0;
  #length = 0;

  update(bytes: Uint8Array): void {
    this.#length += bytes.byteLength;
    let at = 0;
    if (this.#filled > 0) {
      at = Math.min(64 - this.#filled, bytes.byteLength);
      this.#block.set(bytes.subarray(0, at), this.#filled);
      this.#filled += at;
      if (this.#filled < 64) return;
      this.#mix(new DataView(this.#block.buffer), 0);
    }
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (; at + 64 <= bytes.byteLength; at += 64) this.#mix(view, at);
    this.#block.set(bytes.subarray(at));
    this.#filled = bytes.byteLength - at;
  }

  /** Returns the sum in lower-case hex; nothing can be added after it. */
  hex(): string {
    const length = this.#length;
    const end = new Uint8Array(((this.#filled + 72) & ~63) - this.#filled);
    end[0] = 0x80;
    const view = new DataView(end.buffer);
    view.setUint32(end.byteLength - 8, Math.floor(length / 2 ** 29));
    view.setUint32(end.byteLength - 4, (length * 8) >>> 0);
    this.update(end);
    return Array.from(this.#state, (word) => (word >>> 0).toString(16).padStart(8, '0')).join('');
  }

  #mix(view: DataView, at: number): void {
    const w = this.#words;
    for (let i = 0; i < 16; i += 1) w[i] = view.getInt32(at + 4 * i);
    for (let i = 16; i < 64; i += 1) {
      const x = w[i - 15] as number;
      const y = w[i - 2] as number;
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      w[i] = ((w[i - 16] as number) + s0 + (w[i - 7] as number) + s1) | 0;
    }
    const h = this.#state;
    let a = h[0] as number;
    let b = h[1] as number;
    let c = h[2] as number;
    let d = h[3] as number;
    let e = h[4] as number;
    let f = h[5] as number;
    let g = h[6] as number;
    let l = h[7] as number;
    for (let i = 0; i < 64; i += 1) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const t1 = (l + s1 + ((e & f) ^ (~e & g)) + (K[i] as number) + (w[i] as number)) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      l = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    h[0] = (h[0] as number) + a;
    h[1] = (h[1] as number) + b;
    h[2] = (h[2] as number) + c;
    h[3] = (h[3] as number) + d;
    h[4] = (h[4] as number) + e;
    h[5] = (h[5] as number) + f;
    h[6] = (h[6] as number) + g;
    h[7] = (h[7] as number) + l;
  }
}
