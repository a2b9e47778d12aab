import { beforeEach, describe, expect, it, vi } from 'vitest';

import type { SourceSpec } from '../src/protocol/protocol.js';
import type { PhaseProgress } from '../src/protocol/reports.js';
import { openSource } from '../src/worker/sources.js';
import { bytesOf } from './saves.js';

const WHOLE = bytesOf(1, 100);
type Answer = (range: string | null, headers: Headers) => Response | Promise<Response>;
let asked: Headers[] = [];
/** Answers the requests in turn; the last reply answers all later ones. */
function served(...answers: Answer[]): void {
  asked = [];
  vi.stubGlobal(
    'fetch',
    async (_url: string, { headers, signal }: { headers: HeadersInit; signal: AbortSignal }) => {
      if (signal.aborted) throw new DOMException('aborted', 'AbortError');
      const given = new Headers(headers);
      asked.push(given);
      const answer = answers[Math.min(asked.length, answers.length) - 1];
      if (answer === undefined) throw new TypeError('Failed to fetch');
      return answer(given.get('range'), given);
    },
  );
  return;
}
/** Returns a body that ends, or breaks off, after some bytes. */
function reply(
  status: number,
  bytes: Uint8Array<ArrayBuffer>,
  headers: Record<string, string>,
  breaks = false,
): Response {
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (bytes.byteLength > 0) controller.enqueue(bytes.slice());
      bytes = bytes.slice(0, 0);
      if (breaks) controller.error(new TypeError('network error'));
      else controller.close();
    },
  });
  // A body is passed on before it breaks.
  return new Response(body, { status, headers });
}
/** Returns a reply as one of another origin, which hides its encoding. */
const elsewhere = (response: Response): Response =>
  Object.defineProperty(response, 'type', { value: 'cors' });
const TAG = { etag: '"one"' };
const cut =
  (at: number, headers: Record<string, string> = TAG): Answer =>
  () =>
    reply(200, WHOLE.slice(0, at), { 'content-length': '100', ...headers });
const rest =
  (from: number, to = 100, headers: Record<string, string> = TAG): Answer =>
  () =>
    reply(206, WHOLE.slice(from, to), {
      'content-range': `bytes ${from}-99/100`,
      'content-length': String(100 - from),
      ...headers,
    });

async function fetched(
  onProgress: (progress: PhaseProgress) => void = () => undefined,
  signal = new AbortController().signal,
  parts: Extract<SourceSpec, { kind: 'url' }>['parts'] = {
    headers: [['x-key', 'k']],
    fields: { credentials: 'omit' },
  },
): Promise<Uint8Array> {
  const source = await openSource(
    { kind: 'url', name: 'm', url: 'https://here/m', parts },
    signal,
    onProgress,
  );
  return source.read(0, source.size);
}
const refused = (code: string): object => ({ code: 'BAD_MODEL_FILE', detail: { code } });

beforeEach(() => {
  // Delays are short here, but keep their order.
  const timer = vi
    .spyOn(globalThis, 'setTimeout')
    .mockImplementation(((work: () => void) => setImmediate(work)) as unknown as typeof setTimeout);
  return () => {
    timer.mockRestore();
    vi.unstubAllGlobals();
  };
});

describe('a download', () => {
  it('is_complete_and_reports_its_progress', async () => {
    served(cut(100));
    const seen: number[] = [];
    expect([
      ...(await fetched(({ loaded, total, fraction }) => seen.push(loaded, total, fraction))),
    ]).toEqual([...WHOLE]);
    expect(seen).toEqual([100, 100, 1]);
    expect(asked[0]?.get('x-key')).toBe('k');
  });
  it('that_ends_early_continues_by_range', async () => {
    served(cut(40), rest(8, 60), rest(28));
    expect([...(await fetched())]).toEqual([...WHOLE]);
    expect(
      asked.map((headers) => [headers.get('range'), headers.get('if-range'), headers.get('x-key')]),
    ).toEqual([
      [null, null, 'k'],
      ['bytes=8-', '"one"', 'k'],
      ['bytes=28-', '"one"', 'k'],
    ]);
  });
  it('that_is_interrupted_continues_by_range', async () => {
    served(() => reply(200, WHOLE.slice(0, 0), { 'content-length': '100', ...TAG }, true), rest(0));
    expect([...(await fetched())]).toEqual([...WHOLE]);
  });
  it('continues_after_a_while_without_a_network', async () => {
    served(cut(40), () => Promise.reject(new TypeError('Failed to fetch')), rest(8));
    expect([...(await fetched())]).toEqual([...WHOLE]);
  });
  it('continues_with_a_date_and_with_a_server_that_has_no_ranges', async () => {
    const date = { 'last-modified': 'Sun, 01 Nov 2026 00:00:00 GMT', etag: 'W/"weak"' };
    served(cut(40, date), cut(100, date));
    expect([...(await fetched())]).toEqual([...WHOLE]);
    expect(asked[1]?.get('if-range')).toBe(date['last-modified']);
  });
  it('whose_range_is_hidden_continues_if_the_length_fits', async () => {
    served(cut(40), () => reply(206, WHOLE.slice(8), { 'content-length': '92', ...TAG }));
    expect([...(await fetched())]).toEqual([...WHOLE]);
  });
  it('that_cannot_continue_is_truncated', async () => {
    for (const answers of [
      [cut(40, {})],
      [cut(40), cut(40)],
      [cut(40), () => reply(403, WHOLE, {})],
      [cut(40), () => Promise.reject(new TypeError('no network'))],
    ]) {
      served(...answers);
      const failing = fetched();
      await expect(failing).rejects.toMatchObject(refused('source.truncated'));
      await expect(failing).rejects.toMatchObject({ detail: { need: 100, have: 40 } });
      if (answers.length === 1) expect(asked).toHaveLength(1);
    }
  });
  it('of_another_file_is_changed', async () => {
    const other = { etag: '"two"' };
    const answers: Answer[] = [
      cut(100, other),
      rest(8, 100, other),
      // The same validator, and other bytes.
      () => reply(206, bytesOf(2, 92), { 'content-range': 'bytes 8-99/100', ...TAG }),
      () => reply(416, WHOLE, {}),
      () => reply(206, WHOLE.slice(40), { 'content-range': 'bytes 8-199/200', ...TAG }),
    ];
    for (const answer of answers) {
      served(cut(40), answer);
      await expect(fetched()).rejects.toMatchObject(refused('source.changed'));
    }
  });
  it('with_a_reply_for_another_range_is_refused', async () => {
    for (const answer of [
      rest(7),
      rest(9),
      () =>
        reply(206, WHOLE.slice(8), {
          'content-range': 'bytes 8-99/100',
          'content-encoding': 'gzip',
          ...TAG,
        }),
      () => reply(206, WHOLE.slice(40), { ...TAG }),
      () => reply(206, WHOLE.slice(40), { 'content-range': 'lines 3-4/5', ...TAG }),
    ]) {
      served(cut(40), answer);
      await expect(fetched()).rejects.toMatchObject(refused('source.range'));
    }
  });
  it('that_is_not_the_whole_file_is_refused', async () => {
    const part = { 'content-range': 'bytes 0-49/100' };
    for (const [code, answer] of [
      ['source.range', () => reply(206, WHOLE.slice(0, 50), part)],
      ['source.range', () => reply(206, WHOLE, {})],
      ['source.range', () => reply(200, WHOLE, { 'content-length': '99' })],
      ['source.truncated', () => reply(200, WHOLE, { 'content-length': '101' })],
      ['source.truncated', () => elsewhere(reply(200, WHOLE, { 'content-length': '1000' }))],
      ['source.download', () => reply(202, WHOLE, {})],
    ] as [string, Answer][]) {
      served(answer);
      await expect(fetched(), code).rejects.toMatchObject(refused(code));
    }
    served(() => reply(206, WHOLE, { 'content-range': 'bytes 0-99/100' }));
    expect([...(await fetched())]).toEqual([...WHOLE]);
  });
  it('whose_encoding_was_cut_is_refused', async () => {
    const gzip = { 'content-encoding': 'gzip' };
    for (const answer of [
      () => reply(206, WHOLE.slice(99), { 'content-length': '901' }),
      () => reply(200, WHOLE, { 'content-length': '1000' }),
    ] as Answer[]) {
      served(() => reply(200, WHOLE, gzip), answer);
      await expect(fetched()).rejects.toMatchObject({
        ...refused('source.truncated'),
        detail: { need: 1000, have: 100 },
      });
      expect(asked[1]?.get('range')).toBe('bytes=99-');
    }
    for (const answer of [
      () => reply(206, WHOLE.slice(99), { 'content-length': '1' }),
      () => reply(416, WHOLE, {}),
    ] as Answer[]) {
      served(() => reply(200, WHOLE, gzip), answer);
      expect((await fetched()).byteLength).toBe(100);
    }
  });
  it('of_a_busy_server_waits_as_it_asks_and_three_times_at_most', async () => {
    const waits: unknown[] = [];
    const timer = vi.mocked(setTimeout).getMockImplementation();
    vi.mocked(setTimeout).mockImplementation(((work: () => void, millis: number) => {
      waits.push(millis);
      return timer?.(work);
    }) as unknown as typeof setTimeout);
    const busy =
      (status: number, after?: string): Answer =>
      () =>
        reply(status, WHOLE, after === undefined ? {} : { 'retry-after': after });
    served(
      busy(429, '7'),
      busy(503),
      cut(40),
      busy(503, new Date(Date.now() + 9000).toUTCString()),
      rest(8),
    );
    expect([...(await fetched())]).toEqual([...WHOLE]);
    expect([waits[0], waits[1]]).toEqual([7000, 1000]);
    expect(Number(waits[3])).toBeGreaterThan(7000);
    served(busy(503, '0'));
    await expect(fetched()).rejects.toThrow(/HTTP 503/);
    expect(asked).toHaveLength(4);
    served(busy(429, '3600'));
    await expect(fetched()).rejects.toThrow(
      /HTTP 429, and its server asks to wait for 3600 seconds/,
    );
    expect(asked).toHaveLength(1);
  });
  it('with_integrity_is_neither_read_by_ranges_nor_continued', async () => {
    const integrity = { fields: { integrity: 'sha256-x' }, headers: [] };
    served();
    await expect(fetched(undefined, undefined, integrity)).rejects.toThrow(
      /its bytes are not those that integrity states/,
    );
    expect(asked).toHaveLength(4);
    served(() => Promise.reject(new TypeError('Failed to fetch')), cut(100));
    expect([...(await fetched(undefined, undefined, integrity))]).toEqual([...WHOLE]);
    for (const parts of [integrity, { fields: { method: 'POST' }, headers: [] }]) {
      served(cut(40), rest(8));
      await expect(fetched(undefined, undefined, parts)).rejects.toMatchObject(
        refused('source.truncated'),
      );
      expect(asked).toHaveLength(1);
    }
  });
  it('that_is_refused_is_reported', async () => {
    served(() => reply(404, WHOLE, {}));
    await expect(fetched()).rejects.toMatchObject(refused('source.download'));
    served();
    await expect(fetched()).rejects.toMatchObject(refused('source.download'));
  });
  it('of_an_encoded_body_is_not_measured_by_its_length', async () => {
    served(() => reply(200, WHOLE, { 'content-length': '7', 'content-encoding': 'gzip' }));
    expect((await fetched()).byteLength).toBe(100);
    served(() => elsewhere(reply(200, WHOLE, { 'content-length': '7' })));
    expect((await fetched()).byteLength).toBe(100);
    served(() => elsewhere(reply(200, WHOLE, { 'content-length': '123' })));
    expect((await fetched()).byteLength).toBe(100);
    served(() => reply(200, WHOLE, { 'content-length': '700', 'content-encoding': 'br' }));
    expect((await fetched()).byteLength).toBe(100);
  });
  it('can_be_aborted_also_while_it_waits', async () => {
    const controller = new AbortController();
    served(cut(40), () => {
      setTimeout(() => controller.abort(), 100);
      return Promise.reject(new TypeError('no network'));
    });
    await expect(fetched(() => undefined, controller.signal)).rejects.toMatchObject({
      name: 'AbortError',
    });
    await expect(fetched(() => undefined, AbortSignal.abort())).rejects.toMatchObject({
      name: 'AbortError',
    });
  });
});
