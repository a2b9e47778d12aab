import { beforeEach, describe, expect, it, vi } from 'vitest';

import { inspectFiles } from '../src/index.js';
import { rangedSource } from '../src/worker/ranges.js';
import type { RangedSource } from '../src/worker/ranges.js';
import { fakeWorker } from '../src/testing/channel.js';
import { bytesOf } from './saves.js';

const PIECE = 64 << 10;
const WHOLE = bytesOf(4, 5 * PIECE + 100);
const SPEC = { kind: 'url', name: 'm.gguf', url: 'https://here/m.gguf' } as const;
const PARTS = { headers: [['x-key', 'k']], fields: { credentials: 'include' } };
const TAG = { etag: '"one"' };

interface Reply {
  status: number;
  bytes: Uint8Array<ArrayBuffer>;
  headers: Record<string, string>;
}
type Answer = (from: number, to: number) => Reply | undefined;
let asked: string[] = [];
let sent: Headers | undefined;
let withCredentials = false;

const spans = (given: string | null): [number, number] => {
  const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(given ?? '') ?? [];
  return [Number(from), Math.min(Number(to) + 1, WHOLE.byteLength)];
};
const part: Answer = (from, to) => ({
  status: 206,
  bytes: WHOLE.slice(from, to),
  headers: { 'content-range': `bytes ${from}-${to - 1}/${WHOLE.byteLength}`, ...TAG },
});
const whole: Answer = () => ({
  status: 200,
  bytes: WHOLE,
  headers: { 'content-length': String(WHOLE.byteLength), ...TAG },
});

/** Sets the server's replies: to the first request, then to those caused by the core's reads. */
function served(first: Answer, later: Answer = part): void {
  asked = [];
  vi.stubGlobal(
    'fetch',
    async (_: string, { headers, signal }: { headers: HeadersInit; signal: AbortSignal }) => {
      signal.throwIfAborted();
      const given = new Headers(headers);
      asked.push(given.get('range') ?? 'all');
      const {
        status,
        bytes,
        headers: more,
      } = first(...spans(given.get('range'))) ?? {
        status: 404,
        bytes: new Uint8Array(),
        headers: {},
      };
      return new Response(bytes, { status, headers: more });
    },
  );
  vi.stubGlobal(
    'XMLHttpRequest',
    class {
      status = 0;
      responseType = '';
      response: unknown;
      set withCredentials(value: boolean) {
        withCredentials = value;
      }
      #headers = new Headers();
      #given = new Headers();
      open(method: string, url: string, waits: boolean): void {
        expect([method, url, waits]).toEqual(['GET', SPEC.url, false]);
      }
      setRequestHeader(key: string, value: string): void {
        this.#given.set(key, value);
      }
      send(): void {
        asked.push(this.#given.get('range') ?? 'all');
        sent = this.#given;
        const reply = later(...spans(this.#given.get('range')));
        if (!reply) throw new DOMException('no network', 'NetworkError');
        this.status = reply.status;
        this.#headers = new Headers(reply.headers);
        expect(this.responseType).toBe('arraybuffer');
        this.response = reply.bytes.buffer;
      }
      getResponseHeader(name: string): string | null {
        return this.#headers.get(name);
      }
    },
  );
}

async function source(
  spec: Parameters<typeof rangedSource>[0] = { ...SPEC, parts: PARTS },
): Promise<RangedSource> {
  const made = await rangedSource(spec, new AbortController().signal);
  if (!made) throw new Error('the server has no ranges');
  return made;
}

beforeEach(() => () => vi.unstubAllGlobals());

describe('a ranged source', () => {
  it('requests_whole_pieces_once_and_adjacent_ones_together', async () => {
    served(part);
    const file = await source();
    expect([file.size, asked]).toEqual([WHOLE.byteLength, [`bytes=0-${PIECE - 1}`]]);
    expect(file.read(0, 8)).toEqual(WHOLE.slice(0, 8));
    expect(asked).toHaveLength(1);
    // Detached from its object, as the core uses it.
    const { read } = file;
    expect(read(PIECE - 1, PIECE + 2)).toEqual(WHOLE.slice(PIECE - 1, 2 * PIECE + 1));
    expect(asked.slice(1)).toEqual([`bytes=${PIECE}-${3 * PIECE - 1}`]);
    expect(file.read(PIECE, 2 * PIECE)).toEqual(WHOLE.slice(PIECE, 3 * PIECE));
    expect(file.read(0, WHOLE.byteLength)).toEqual(WHOLE);
    expect(asked.slice(2)).toEqual([`bytes=${3 * PIECE}-${WHOLE.byteLength - 1}`]);
    expect([sent?.get('x-key'), withCredentials]).toEqual(['k', true]);
  });
  it('of_a_file_smaller_than_a_piece_costs_one_request', async () => {
    served(() => ({
      status: 206,
      bytes: WHOLE.slice(0, 10),
      headers: { 'content-range': 'bytes 0-9/10' },
    }));
    const file = await source();
    expect([file.size, file.read(3, 7)]).toEqual([10, WHOLE.slice(3, 10)]);
    expect(asked).toHaveLength(1);
    expect(() => file.read(3, 8)).toThrow(
      expect.objectContaining({ detail: { code: 'source.read' } }),
    );
  });
  it('is_not_used_if_the_server_has_no_ranges_or_hides_them', async () => {
    const answers: Answer[] = [
      whole,
      (from, to) => ({ ...part(from, to), headers: TAG }) as Reply,
      () => undefined,
      () => ({ status: 416, bytes: new Uint8Array(), headers: {} }),
      (from) => part(from, 100),
      // Without a version, its pieces could be of different files.
      (from, to) =>
        ({ ...part(from, to), headers: { ...part(from, to)?.headers, etag: 'W/"one"' } }) as Reply,
      (from, to) =>
        ({
          ...part(from, to),
          headers: { ...part(from, to)?.headers, 'content-encoding': 'gzip' },
        }) as Reply,
    ];
    for (const answer of answers) {
      served(answer);
      expect(await rangedSource(SPEC, new AbortController().signal)).toBeUndefined();
    }
    served(part);
    vi.stubGlobal('location', new URL('https://here/page'));
    expect(
      await rangedSource(
        { ...SPEC, parts: { headers: [], fields: { credentials: 'omit' } } },
        new AbortController().signal,
      ),
    ).toBeUndefined();
    for (const fields of ['method', 'integrity', 'mode', 'cache'].map((key) => ({
      [key]: 'other',
    })))
      expect(
        await rangedSource(
          { ...SPEC, parts: { headers: [], fields } },
          new AbortController().signal,
        ),
      ).toBeUndefined();
    await expect(rangedSource(SPEC, AbortSignal.abort())).rejects.toMatchObject({
      name: 'AbortError',
    });
  });
  it.each<[string, Answer]>([
    [
      'source.changed',
      (from, to) =>
        ({ ...part(from, to), headers: { ...part(from, to)?.headers, etag: '"two"' } }) as Reply,
    ],
    [
      'source.changed',
      (from, to) =>
        ({
          ...part(from, to),
          headers: { ...TAG, 'content-range': `bytes ${from}-${to - 1}/${WHOLE.byteLength + 1}` },
        }) as Reply,
    ],
    ['source.changed', () => ({ status: 416, bytes: new Uint8Array(), headers: TAG })],
    ['source.range', whole],
    ['source.range', (from, to) => part(from + 1, to)],
    ['source.range', (from, to) => part(from, to - 1)],
    ['source.range', (from, to) => ({ ...part(from, to), bytes: WHOLE.slice(0, 3) }) as Reply],
    ['source.download', () => ({ status: 503, bytes: new Uint8Array(), headers: {} })],
    ['source.download', () => undefined],
  ])('that_gets_something_else_is_%s', async (code, later) => {
    served(part, later);
    const file = await source();
    expect(() => file.read(PIECE, 4)).toThrow(expect.objectContaining({ code: 'BAD_MODEL_FILE' }));
    expect(file.failure?.detail.code).toBe(code);
  });
});

describe('an inspection of a URL', () => {
  const inspect = (options = {}): ReturnType<typeof inspectFiles> =>
    inspectFiles(new URL(SPEC.url), { worker: fakeWorker, ...options });
  it('costs_its_header_by_range', async () => {
    served(part);
    const { files, kind } = await inspect();
    expect([kind, files[0]?.file, files[0]?.inventory[0]?.shape]).toEqual([
      'model',
      'm.gguf',
      [WHOLE.byteLength],
    ]);
    expect(asked).toEqual([`bytes=0-${PIECE - 1}`]);
  });
  it('downloads_it_where_all_of_it_is_read_or_there_are_no_ranges', async () => {
    served(whole);
    await inspect();
    expect(asked).toEqual([`bytes=0-${PIECE - 1}`, 'all']);
    served(whole);
    await inspect({ read: true });
    expect(asked).toEqual(['all']);
  });
});
