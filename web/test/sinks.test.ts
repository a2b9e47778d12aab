/** Exports into sinks that fail or stall at each of their calls: a receipt is returned exactly if the sink has taken all bytes and has closed. */
import { beforeEach, describe, expect, it } from 'vitest';

import { openModel } from '../src/index.js';
import type { ExportTarget, Receipt } from '../src/index.js';
import { fakeWorker } from '../src/testing/channel.js';
import { fake } from '../src/testing/fake-calls.js';
import './runs.js';

const PIECES = 30;
beforeEach(() => {
  Object.assign(fake, { exportBytes: 100 * PIECES, pieceBytes: 100 });
});

type Step = number | 'close' | 'abort';
type Fault = 'throws' | 'stalls' | 'waits';
const never = new Promise<never>(() => undefined);

/** A sink with a fault at one of its calls; writes are numbered from 0. */
class Scripted {
  readonly error = new RangeError('this sink is broken');
  bytes = 0;
  writes = 0;
  closed = false;
  /** True once the sink was to be aborted, even if a stalled write keeps it from noticing. */
  aborted = false;
  /** Resolves when the fault occurs. */
  readonly reached: Promise<void>;
  #reach: () => void = () => undefined;
  constructor(
    private readonly at: Step,
    private readonly fault: Fault,
  ) {
    this.reached = new Promise((resolve) => (this.#reach = resolve));
  }
  async #call(step: Step): Promise<void> {
    if (step !== this.at) return;
    this.#reach();
    if (this.fault === 'throws') throw this.error;
    await (this.fault === 'stalls' ? never : new Promise((done) => setTimeout(done, 20)));
  }
  readonly write = async (chunk: ArrayBuffer | Uint8Array): Promise<void> => {
    await this.#call(this.writes++);
    this.bytes += chunk.byteLength;
  };
  readonly close = async (): Promise<void> => {
    await this.#call('close');
    this.closed = true;
  };
  readonly abort = async (): Promise<void> => {
    this.aborted = true;
    await this.#call('abort');
  };
  target(kind: 'stream' | 'file'): ExportTarget {
    const { write, close, abort } = this;
    // The stand-in has the parts of a handle that are used.
    if (kind === 'file')
      return {
        kind,
        createWritable: async () => ({ write, close, abort }),
      } as unknown as FileSystemFileHandle;
    return new WritableStream({
      start: ({ signal }) => signal.addEventListener('abort', () => (this.aborted = true)),
      write,
      close,
      abort,
    });
  }
}

type Format = 'json' | 'safetensors';
interface Outcome {
  receipt?: Receipt | undefined;
  thrown?: unknown;
}
/** Exports into a sink, and aborts the export `late` milliseconds after its fault, if that is given. */
async function exported(
  sink: Scripted,
  kind: 'stream' | 'file',
  format: Format,
  late?: number,
): Promise<Outcome> {
  const model = await openModel(new File(['GGUF....'], 'a.gguf'), { worker: fakeWorker });
  const controller = new AbortController();
  if (late !== undefined) void sink.reached.then(() => setTimeout(() => controller.abort(), late));
  try {
    return {
      receipt: await model.exportTo(sink.target(kind), { format, signal: controller.signal }),
    };
  } catch (thrown) {
    return { thrown };
  } finally {
    await model.dispose();
  }
}

const WHOLE = { json: 100 * PIECES, safetensors: 0 };
const WRITES = { json: PIECES, safetensors: 0 };
beforeEach(async () => {
  const sink = new Scripted('abort', 'throws');
  await exported(sink, 'stream', 'safetensors');
  WHOLE.safetensors = sink.bytes;
  WRITES.safetensors = sink.writes;
  expect(sink.closed && sink.writes > PIECES).toBe(true);
});

const stepsOf = (format: Format): Step[] => {
  const writes = WRITES[format];
  return [...new Set([...Array(20).keys(), writes - 3, writes - 2, writes - 1]), 'close'];
};

describe.each([
  ['stream', 'json'],
  ['stream', 'safetensors'],
  ['file', 'json'],
  ['file', 'safetensors'],
] as const)('an export into a %s of %s', (kind, format) => {
  const each = (work: (step: Step) => Promise<void>): Promise<unknown> =>
    Promise.all(stepsOf(format).map(work));
  it('rejects_with_what_the_sink_threw', () =>
    each(async (step) => {
      const sink = new Scripted(step, 'throws');
      const { receipt, thrown } = await exported(sink, kind, format);
      expect([step, receipt, sink.closed]).toEqual([step, undefined, false]);
      expect(thrown).toMatchObject({
        code: 'STORAGE_FAILED',
        detail: { code: 'sink.write', reason: 'RangeError' },
      });
      const cause: unknown = Reflect.get(Object(thrown), 'cause');
      // An error of a file was thrown in the worker, of which its text remains.
      expect(cause).toBe(kind === 'stream' ? sink.error : 'RangeError: this sink is broken');
    }).then(() => expect(fake.streams).toBe(0)));
  it('waits_for_a_sink_that_stalls_until_its_signal_ends_it', () =>
    each(async (step) => {
      const sink = new Scripted(step, 'stalls');
      const { receipt, thrown } = await exported(sink, kind, format, 30);
      expect([step, receipt, sink.closed]).toEqual([step, undefined, false]);
      expect(thrown).toMatchObject({ name: 'AbortError' });
      await expect.poll(() => [step, sink.aborted]).toEqual([step, true]);
    }).then(() => expect(fake.streams).toBe(0)));
  it('returns_the_receipt_of_a_slow_sink_once_it_has_closed', () =>
    each(async (step) => {
      const sink = new Scripted(step, 'waits');
      const { receipt, thrown } = await exported(sink, kind, format);
      expect([step, thrown, sink.bytes, sink.writes, sink.closed]).toEqual([
        step,
        undefined,
        WHOLE[format],
        WRITES[format],
        true,
      ]);
      expect(receipt).toMatchObject({ operation: 'export' });
    }));
  it.each(['throws', 'stalls'] as const)(
    'that_is_aborted_ends_even_if_the_abort_of_the_sink_%s',
    async (fault) => {
      const sink = new Scripted('abort', fault);
      const controller = new AbortController();
      fake.onCall = ({ call, at }) => call === 'chunk' && at === 5 && controller.abort();
      const model = await openModel(new File(['GGUF....'], 'a.gguf'), { worker: fakeWorker });
      const aborted = model.exportTo(sink.target(kind), { format, signal: controller.signal });
      await expect(aborted).rejects.toMatchObject({ name: 'AbortError' });
      fake.onCall = undefined;
      await expect.poll(() => [sink.aborted, sink.closed]).toEqual([true, false]);
      await model.dispose();
    },
  );
});

describe('a stream', () => {
  it('has_only_one_piece_under_way', async () => {
    let [now, most] = [0, 0];
    const stream = new WritableStream({
      write: async () => {
        most = Math.max(most, ++now);
        await new Promise((done) => setTimeout(done, 2));
        now -= 1;
      },
    });
    fake.onCall = ({ call }) => call === 'chunk' && expect(now).toBe(0);
    const model = await openModel(new File(['GGUF....'], 'a.gguf'), { worker: fakeWorker });
    await model.exportTo(stream, { format: 'json' });
    expect(most).toBe(1);
    fake.onCall = undefined;
  });
  it('that_something_else_writes_to_is_refused', async () => {
    const stream = new WritableStream();
    stream.getWriter();
    const model = await openModel(new File(['GGUF....'], 'a.gguf'), { worker: fakeWorker });
    await expect(model.exportTo(stream)).rejects.toMatchObject({
      code: 'BAD_OPTION',
      detail: { path: 'target' },
    });
  });
  it('is_closed_or_aborted_in_the_end', async () => {
    const whole = new WritableStream();
    const model = await openModel(new File(['GGUF....'], 'a.gguf'), { worker: fakeWorker });
    await model.exportTo(whole, { format: 'json' });
    expect(whole.locked).toBe(false);
    await expect(whole.getWriter().closed).resolves.toBeUndefined();
  });
});
