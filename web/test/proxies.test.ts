/**
 * Servers that break, cut, delay, compress, redirect, mislabel and throttle: the bytes that arrive are the file's, or the download is refused. A server
 * that consistently says of other bytes that they are the file cannot be distinguished from one that has them, so there is none such here.
 */
import { afterAll, beforeAll, expect, it, vi } from 'vitest';

import { toSource } from '../src/page/inputs.js';
import { TabtuneError } from '../src/protocol/errors.js';
import { openSource } from '../src/worker/sources.js';
import { behaviours, isHarmless, isUnseen, proxy, VERSIONS } from './proxy.js';
import type { Behaviour } from './proxy.js';

const ALL = behaviours(900, 58).filter((one) => !isUnseen(one));
let server: Awaited<ReturnType<typeof proxy>>;

beforeAll(async () => {
  server = await proxy(ALL);
  const plain = setTimeout;
  // Only the delays of downloads; those of Node's own fetch have arguments or are short.
  const short = (work: () => void, millis = 0, ...given: unknown[]): unknown =>
    plain(work, given.length === 0 && millis >= 1000 ? 0 : millis, ...given);
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(short as typeof setTimeout);
});
afterAll(() => {
  vi.restoreAllMocks();
  server.close();
});

/** Returns `loaded`, `refused` or what went wrong. */
async function outcome(at: number): Promise<string> {
  try {
    const spec = await toSource(new URL(`${server.url}/${at}`), 'files', 'model.safetensors');
    const source = await openSource(spec, new AbortController().signal, () => undefined);
    const bytes = Buffer.from(source.read(0, source.size));
    return VERSIONS.some((file) => file.equals(bytes)) ? 'loaded' : `${bytes.length} other bytes`;
  } catch (thrown) {
    const typed =
      thrown instanceof TabtuneError &&
      thrown.code === 'BAD_MODEL_FILE' &&
      thrown.detail.code?.startsWith('source.');
    return typed ? 'refused' : `raw: ${String(thrown)}`;
  }
}

it('never_give_other_bytes_than_the_file', async () => {
  const outcomes: string[] = [];
  const next = ALL.keys();
  const one = async (): Promise<void> => {
    for (const at of next) outcomes[at] = await outcome(at);
  };
  await Promise.all(Array.from({ length: 24 }, one));
  const wrong = (behaviour: Behaviour, at: number): boolean =>
    outcomes[at] !== 'loaded' && (outcomes[at] !== 'refused' || isHarmless(behaviour));
  expect(
    ALL.map((one, at) => ({ outcome: outcomes[at], ...one })).filter((_, at) =>
      wrong(ALL[at] as Behaviour, at),
    ),
  ).toEqual([]);
  for (const each of ['loaded', 'refused'])
    expect(outcomes.filter((one) => one === each).length).toBeGreaterThan(150);
});
