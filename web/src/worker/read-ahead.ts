/**
 * Reads a Blob ahead of the core, whose reads are synchronous. Each synchronous read of a Blob makes a buffer that the browser collects late, some
 * hundred megabytes at a time; a byte stream fills one buffer again and again.
 */

/** Size of the buffer. */
const BUFFER_BYTES = 4 << 20;
/** Number of bytes after the last read below which the buffer is filled. */
const ENOUGH_BYTES = 2 << 20;

/** The part of a Blob that follows the last read. */
export class ReadAhead {
  /** The bytes of the file from `#start` to `#end`; of none while the buffer is being filled. */
  #buffer = new ArrayBuffer(0);
  #start = 0;
  #end = 0;
  /** End of the last read. */
  #next = 0;
  /** Reads the bytes from `#end` on. */
  #reader: ReadableStreamBYOBReader | undefined;
  #supported = true;

  constructor(private readonly blob: Blob) {}

  /** Returns the bytes of a range if they are in the buffer, which the next call of `fetch` overwrites. */
  read(offset: number, length: number): Uint8Array | undefined {
    this.#next = offset + length;
    const within = offset >= this.#start && this.#next <= this.#end;
    const bytes = within ? new Uint8Array(this.#buffer, offset - this.#start, length) : undefined;
    if (this.#next < this.blob.size) return bytes;
    const last = bytes?.slice();
    this.#forget();
    return last;
  }

  /** Fills the buffer with what follows the last read; returns `undefined` if there is enough. */
  fetch(): Promise<void> | undefined {
    const left = this.blob.size - this.#next;
    const within = this.#next >= this.#start && this.#next <= this.#end;
    const enough = within && this.#end - this.#next >= Math.min(ENOUGH_BYTES, left);
    return enough || left === 0 || this.blob.size <= BUFFER_BYTES || !this.#supported
      ? undefined
      : this.#fill(within);
  }

  async #fill(within: boolean): Promise<void> {
    const kept = within ? this.#end - this.#next : 0;
    let bytes =
      this.#buffer.byteLength > 0 ? new Uint8Array(this.#buffer) : new Uint8Array(BUFFER_BYTES);
    bytes.copyWithin(0, this.#next - this.#start, this.#next - this.#start + kept);
    let filled = kept;
    const start = this.#next;
    this.#start = this.#end = 0;
    try {
      if (!within || this.#reader === undefined) {
        this.#close();
        this.#reader = this.blob
          .slice(start + kept)
          .stream()
          .getReader({ mode: 'byob' });
      }
      while (filled < bytes.byteLength) {
        const { value, done } = await this.#reader.read(bytes.subarray(filled));
        if (value === undefined) break;
        bytes = new Uint8Array(value.buffer);
        filled += value.byteLength;
        if (done) break;
      }
      [this.#buffer, this.#start, this.#end] = [bytes.buffer, start, start + filled];
    } catch {
      // The browser has no byte streams of Blobs, or the file cannot be read, which the next synchronous read reports.
      this.#forget();
      this.#supported = false;
    }
  }

  #close(): void {
    void this.#reader?.cancel().catch(() => undefined);
    this.#reader = undefined;
  }

  #forget(): void {
    this.#close();
    this.#buffer = new ArrayBuffer(0);
    this.#start = this.#end = 0;
  }
}
