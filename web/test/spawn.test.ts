import { afterEach, describe, expect, it, vi } from 'vitest';

import { Loading } from '../src/page/loading.js';
import { newModel } from '../src/index.js';
import type { WorkerOptions } from '../src/index.js';
import { channel, fakeWorker } from '../src/testing/channel.js';
import type { FakePort } from '../src/testing/channel.js';
import { fake } from '../src/testing/fake-calls.js';
import { collect, SHAPE, TEXT, trainerOf } from './runs.js';

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** A page whose workers, when made from an address, are these ports. */
function pageWith(make: () => FakePort): void {
  vi.stubGlobal('location', new URL('https://here/page.html'));
  vi.stubGlobal('origin', 'https://here');
  vi.stubGlobal('Worker', function () {
    return make();
  });
}
const OWN = { workerUrl: 'https://here/worker.js' };

describe('a script that loads slowly', () => {
  it('is_not_silent_before_it_is_there', async () => {
    vi.useFakeTimers();
    const { port } = channel();
    pageWith(() => port);
    let arrive: (response: Response) => void = () => undefined;
    vi.stubGlobal('fetch', () => new Promise<Response>((resolve) => (arrive = resolve)));
    const opened = newModel(SHAPE, TEXT, OWN);
    let ended = false;
    opened.catch(() => (ended = true));
    await vi.advanceTimersByTimeAsync(200_000);
    expect(ended).toBe(false);
    arrive(new Response(''));
    await vi.advanceTimersByTimeAsync(29_000);
    expect(ended).toBe(false);
    await vi.advanceTimersByTimeAsync(1500);
    await expect(opened).rejects.toMatchObject({
      code: 'WORKER_CRASHED',
      detail: { code: 'worker.silent' },
    });
  });
  it('is_waited_for_two_minutes_where_its_address_is_not_known', async () => {
    vi.useFakeTimers();
    const opened = newModel(SHAPE, TEXT, { worker: () => channel().port });
    let ended = false;
    opened.catch(() => (ended = true));
    await vi.advanceTimersByTimeAsync(119_000);
    expect(ended).toBe(false);
    await vi.advanceTimersByTimeAsync(1500);
    await expect(opened).rejects.toMatchObject({ detail: { code: 'worker.silent' } });
  });
  it('does_not_end_a_worker_that_answered_meanwhile', async () => {
    vi.useFakeTimers();
    const port = fakeWorker();
    pageWith(() => port);
    let arrive: (response: Response) => void = () => undefined;
    vi.stubGlobal('fetch', () => new Promise<Response>((resolve) => (arrive = resolve)));
    const post = port.postMessage.bind(port);
    const held: unknown[] = [];
    port.postMessage = (message: unknown) => void held.push(message);
    const opened = newModel(SHAPE, TEXT, OWN);
    await vi.advanceTimersByTimeAsync(31_000);
    port.postMessage = post;
    held.forEach((message) => post(message, []));
    await vi.advanceTimersByTimeAsync(100);
    using model = await opened;
    arrive(new Response(''));
    await vi.advanceTimersByTimeAsync(60_000);
    vi.useRealTimers();
    expect(await model.tokenize('ab')).toEqual([97, 98]);
  });
});

describe('the compiled core', () => {
  /** Returns what the worker of a new model made its core from. */
  async function sourceOf(options: WorkerOptions): Promise<unknown> {
    await (await newModel(SHAPE, TEXT, { worker: () => fakeWorker(), ...options })).dispose();
    return fake.source;
  }

  it('of_a_first_worker_is_what_later_ones_of_the_page_start_from', async () => {
    const own = { wasmUrl: 'https://here/core.wasm' };
    expect(await sourceOf(own)).toBe(own.wasmUrl);
    expect(await sourceOf(own)).toBeInstanceOf(WebAssembly.Module);
    expect(await sourceOf({ wasmUrl: 'https://here/other.wasm' }), 'another address').toBe(
      'https://here/other.wasm',
    );
  });
  it('of_given_bytes_is_neither_kept_nor_replaced', async () => {
    const bytes = [1, 2, 3, 4];
    const wasmBinary = Uint8Array.from(bytes).buffer;
    for (const _ of [1, 2])
      expect([...new Uint8Array((await sourceOf({ wasmBinary })) as ArrayBuffer)]).toEqual(bytes);
  });
});

describe('data', () => {
  it('that_cannot_be_read_again_are_not_kept_and_the_run_continues', async () => {
    await using trainer = await trainerOf({ autosave: false });
    await trainer.step(2);
    const gone = vi.spyOn(FileReaderSync.prototype, 'readAsArrayBuffer').mockImplementation(() => {
      throw new DOMException('it has changed', 'NotReadableError');
    });
    const { hasData } = await trainer.save();
    gone.mockRestore();
    expect(hasData).toBe(false);
    const events = await collect(trainer.run({ maxSteps: 1 }));
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'warning', code: 'data.not-kept' }),
    );
    expect(trainer.completedSteps).toBe(3);
    expect(fake.sessions).toBe(1);
  });
});

describe('a script that a bundler left out', () => {
  it.each([
    ['https://here/node_modules/.vite/deps/tabtune.js?v=1', true],
    ['https://here/assets/index-1.js', false],
  ])('is_explained_where_vite_serves_%s', async (here, explained) => {
    const { message } = await new Loading(undefined, here).why();
    expect(message.includes("optimizeDeps: { exclude: ['tabtune'] }")).toBe(explained);
  });
});
