import { beforeEach, describe, expect, it, vi } from 'vitest';

import { openSource } from '../src/worker/sources.js';
import { completed, headed } from '../src/worker/remote.js';
import { RemoteSource } from '../src/worker/remote-source.js';
import { listDownloads, removeDownloads } from '../src/worker/storage/kept-downloads.js';
import { freshOrigin, StoredFile } from './origin.js';
import { bytesOf } from './saves.js';

const origin = freshOrigin();
const SIZE = 3 << 20;
const FILE = bytesOf(3, SIZE);
const URL = 'https://here/m.gguf';
const signal = new AbortController().signal;
const quiet = (): void => undefined;
let asked: (string | null)[] = [];
/** Number of bytes after which a body breaks off. */
let most = Infinity;
let tag = '"one"';

beforeEach(() => {
  [asked, most, tag] = [[], Infinity, '"one"'];
  vi.stubGlobal('fetch', async (_: string, { headers }: { headers: HeadersInit }) => {
    const range = new Headers(headers).get('range');
    asked.push(range);
    const [, first = '0', last = ''] = /^bytes=(\d+)-(\d*)$/.exec(range ?? '') ?? [];
    const [from, to] = [Number(first), Math.min(last === '' ? SIZE : Number(last) + 1, SIZE)];
    const body = FILE.slice(from, Math.min(to, from + most));
    return new Response(body, {
      status: range === null ? 200 : 206,
      headers: {
        etag: tag,
        'content-length': String(to - from),
        'content-range': `bytes ${from}-${to - 1}/${SIZE}`,
      },
    });
  });
  const timer = vi
    .spyOn(globalThis, 'setTimeout')
    .mockImplementation(((work: () => void) => setImmediate(work)) as unknown as typeof setTimeout);
  return () => timer.mockRestore();
});

const open = (more: object = {}): ReturnType<typeof openSource> =>
  openSource({ kind: 'url', name: 'm.gguf', url: URL, ...more }, signal, quiet, 'beginning');
const sumOf = async (bytes: Uint8Array<ArrayBuffer>): Promise<string> =>
  Buffer.from(await crypto.subtle.digest('SHA-256', bytes)).toString('hex');

describe('a kept download', () => {
  it('begins_with_its_first_bytes_and_loads_what_a_read_wants', async () => {
    const source = await open();
    expect([source.size, asked]).toEqual([SIZE, ['bytes=0-1048575']]);
    const end = await headed([source], signal, quiet, () => [...source.read(1_500_000, 4)]);
    expect(end).toEqual([...FILE.slice(1_500_000, 1_500_004)]);
    expect(asked).toEqual(['bytes=0-1048575', 'bytes=1048544-2097151']);
    expect(await listDownloads()).toEqual([
      { name: URL, size: SIZE, bytes: 2 << 20, complete: false, sha256: undefined },
    ]);
  });
  it('that_is_whole_is_found_by_its_sum_without_a_request', async () => {
    await completed([await open()], signal, quiet);
    const sha256 = await sumOf(FILE);
    expect(await listDownloads()).toMatchObject([{ complete: true, bytes: SIZE, sha256 }]);
    asked = [];
    const source = await open({ url: 'https://other/m.gguf', sum: sha256 });
    expect([...source.read(SIZE - 3, 3)]).toEqual([...FILE.slice(-3)]);
    expect([source.origin, asked]).toEqual([`https://other/m.gguf#sum=${sha256}`, []]);
    // Without a sum, its server says whether it is the same.
    await open();
    expect(asked).toEqual(['bytes=0-0']);
    tag = '"two"';
    expect(await open()).toBeInstanceOf(RemoteSource);
    expect(await listDownloads()).toMatchObject([{ complete: false }]);
  });
  it('of_which_a_part_is_there_continues', async () => {
    most = 5;
    await expect(open().then((source) => completed([source], signal, quiet))).rejects.toMatchObject(
      { detail: { code: 'source.truncated' } },
    );
    most = Infinity;
    asked = [];
    await completed([await open()], signal, quiet);
    expect(asked[0]).toBe('bytes=0-0');
    expect((await listDownloads())[0]).toMatchObject({ complete: true, sha256: await sumOf(FILE) });
  });
  it('with_another_sum_is_removed', async () => {
    const sum = '0'.repeat(64);
    const source = await open({ sum });
    await expect(completed([source], signal, quiet)).rejects.toMatchObject({
      code: 'INTEGRITY',
      detail: { code: 'source.integrity', want: sum, got: await sumOf(FILE) },
    });
    expect(await listDownloads()).toEqual([]);
  });
  it('that_lost_bytes_is_downloaded_again', async () => {
    const sum = await sumOf(FILE);
    await completed([await open({ sum })], signal, quiet);
    const folder = origin.now.files.at('tabtune-downloads');
    if (!(folder && 'entries' in folder)) throw new Error('no folder');
    for (const entry of folder.entries.values())
      if (entry instanceof StoredFile && !entry.name.endsWith('.json'))
        entry.content = entry.content.slice(1);
    asked = [];
    await completed([await open({ sum })], signal, quiet);
    expect(asked.length).toBeGreaterThan(0);
  });
  it('needs_room_before_its_first_byte', async () => {
    origin.now.quota = 1 << 20;
    await expect(open({ sum: await sumOf(FILE) })).rejects.toMatchObject({
      code: 'QUOTA_EXCEEDED',
      detail: { code: 'download.room', need: SIZE, have: 1 << 20 },
    });
    const source = await open({ keep: false });
    await completed([source], signal, quiet);
    expect([...source.read(0, 3)]).toEqual([...FILE.slice(0, 3)]);
    expect(await listDownloads()).toEqual([]);
  });
  it('is_said_not_to_be_kept_in_a_browser_without_files', async () => {
    vi.stubGlobal('navigator', {});
    const source = await open();
    await completed([source], signal, quiet);
    expect(source.warning?.code).toBe('download.unkept');
  });
  it('is_removed_by_its_name_or_by_that_of_its_repository', async () => {
    const hub = { repo: 'a/b', revision: 'main', commit: 'c0', page: 'https://hub/a/b' };
    await open({ hub, sum: '0'.repeat(64) });
    await open();
    expect(await removeDownloads(['hf:a/x', 'hf:a/b@c', 'https://here/m'])).toEqual([]);
    expect(await removeDownloads(['hf:a/b'])).toEqual(['hf:a/b@c0/m.gguf']);
    expect(await removeDownloads(undefined)).toEqual([URL]);
    expect(await listDownloads()).toEqual([]);
  });
});
