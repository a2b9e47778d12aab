/** The fake core's streams of files, with the digests that a checkpoint needs. */
import type { Values } from 'tabtune-wasm';
import { called, fake, refuse, slices } from './fake-calls.js';

const PIECE = 8 << 20;

/** Contents of the fake's checkpoint.json. */
export interface Checkpointed<P, C> {
  progress: P;
  config: C;
  data: number;
  environment: { adapter: string };
  pieces: string[];
}

export class FileStream {
  #at = 0;
  #file = 0;
  #given = 0;
  #sums: string[] = [];
  #contents: [string, Uint8Array | undefined][];
  constructor(
    contents: [string, Uint8Array][],
    private readonly head?: (pieces: string[]) => unknown,
    private readonly sealed?: object,
  ) {
    this.#contents = head ? [...contents, ['checkpoint.json', undefined]] : contents;
  }
  #encoded(sums: string[]): Uint8Array {
    return new TextEncoder().encode(JSON.stringify(this.head?.(sums)));
  }
  get #pieces(): number {
    return this.#contents.reduce(
      (sum, [, bytes]) => sum + Math.ceil((bytes?.byteLength ?? 0) / PIECE),
      0,
    );
  }
  files(): unknown {
    const empty = Array.from({ length: this.#pieces }, () => '0'.repeat(64));
    return this.#contents.map(([name, bytes]) => ({
      name,
      bytes: (bytes ?? this.#encoded(empty)).byteLength,
    }));
  }
  async nextChunk(): Promise<Uint8Array | undefined> {
    await called('chunk', this.#given);
    await slices(1, 0);
    if (fake.cut) return new Uint8Array();
    const current = this.#contents[this.#file];
    if (!current) return undefined;
    const [, stored] = current;
    if (stored === undefined && this.#sums.length < this.#pieces)
      refuse(
        'CHECKPOINT_CORRUPT',
        'checkpoint.corrupt',
        `digests: ${this.#sums.length} of ${this.#pieces}`,
      );
    const bytes = stored ?? this.#encoded(this.#sums);
    const chunk = bytes.subarray(this.#at, this.#at + fake.pieceBytes);
    this.#at += chunk.byteLength;
    this.#given += 1;
    if (this.#at >= bytes.byteLength) {
      this.#at = 0;
      this.#file += 1;
    }
    return chunk;
  }
  hashed(sha256: string): void {
    if (this.head && this.#sums.length < this.#pieces) this.#sums.push(sha256);
  }
  receipt(): unknown {
    if (this.#file < this.#contents.length)
      refuse('BUSY', 'session.busy', 'the receipt comes after the last piece');
    return this.sealed ?? null;
  }
  free(): void {
    fake.streams -= 1;
  }
}

/** Returns the files with the receipt of an export, written last. */
export function exportStream(contents: [string, Uint8Array][], operation: string): FileStream {
  fake.streams += 1;
  const receipt = {
    version: 1,
    operation,
    outputs: contents.map(([name, { byteLength }]) => ({ name, bytes: byteLength })),
  };
  return new FileStream(
    [...contents, ['tabtune.receipt.json', new TextEncoder().encode(JSON.stringify(receipt))]],
    undefined,
    receipt,
  );
}

/** Exports like the core: GGUF and JSON are one file, safetensors a folder. */
export function exportedAs(
  options: Values,
  base: readonly { name: string }[],
  weights: Uint8Array,
): FileStream {
  const said = new TextEncoder().encode(
    [JSON.stringify(options), ...base.map(({ name }) => name)].join(' '),
  );
  if (options['format'] === 'gguf') return exportStream([['model.gguf', said]], 'export');
  if (options['format'] === 'json') return exportStream([['model.json', weights]], 'export');
  return exportStream(
    [
      ['config.json', said],
      ['model.safetensors', weights],
    ],
    'export',
  );
}
