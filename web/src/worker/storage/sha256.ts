/** SHA-256 of bytes that come piece by piece (FIPS 180-4): browsers hash only whole buffers. */
const BLOCK_BYTES = 64;

const primes: number[] = [];
for (let n = 2; primes.length < 64; n++) if (primes.every((prime) => n % prime !== 0)) primes.push(n);
/** The first 32 bits behind the point. */
const fraction = (value: number): number => ((value % 1) * 2 ** 32) >>> 0;
const FIRST = primes.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)));
const ROUNDS = Int32Array.from(primes, (prime) => fraction(Math.cbrt(prime)));

const turned = (word: number, bits: number): number => (word >>> bits) | (word << (32 - bits));

export class Sha256 {
  readonly #state = Int32Array.from(FIRST);
  readonly #words = new Int32Array(64);
  #rest = new Uint8Array(0);
  #bytes = 0;

  /** Takes the next piece; all but the last are whole blocks of 64 bytes. */
  update(piece: Uint8Array<ArrayBuffer>): void {
    this.#bytes += piece.byteLength;
    const whole = piece.byteLength - (piece.byteLength % BLOCK_BYTES);
    this.#blocks(piece.subarray(0, whole));
    this.#rest = piece.subarray(whole);
  }

  /** The digest of all pieces; after it there are no more. */
  digest(): Uint8Array {
    // One bit, zeros, and the length in bits at the end of a block.
    const last = new Uint8Array(Math.ceil((this.#rest.byteLength + 9) / BLOCK_BYTES) * BLOCK_BYTES);
    last.set(this.#rest);
    last[this.#rest.byteLength] = 0x80;
    new DataView(last.buffer).setBigUint64(last.byteLength - 8, BigInt(this.#bytes) * 8n);
    this.#blocks(last);
    const digest = new DataView(new ArrayBuffer(32));
    this.#state.forEach((word, at) => digest.setUint32(4 * at, word));
    return new Uint8Array(digest.buffer);
  }

  #blocks(bytes: Uint8Array<ArrayBuffer>): void {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const w = this.#words;
    const at = (index: number): number => w[index] ?? 0;
    for (let begin = 0; begin < bytes.byteLength; begin += BLOCK_BYTES) {
      for (let t = 0; t < 16; t++) w[t] = view.getUint32(begin + 4 * t);
      for (let t = 16; t < 64; t++) {
        const [x, y] = [at(t - 15), at(t - 2)];
        w[t] = at(t - 16) + (turned(x, 7) ^ turned(x, 18) ^ (x >>> 3)) + at(t - 7) + (turned(y, 17) ^ turned(y, 19) ^ (y >>> 10));
      }
      let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = this.#state;
      for (let t = 0; t < 64; t++) {
        const one = (h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + (ROUNDS[t] ?? 0) + at(t)) | 0;
        const two = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = (d + one) | 0;
        d = c;
        c = b;
        b = a;
        a = (one + two) | 0;
      }
      [a, b, c, d, e, f, g, h].forEach((word, index) => (this.#state[index] = (this.#state[index] ?? 0) + word));
    }
  }
}
