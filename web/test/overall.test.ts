/** One fraction for a whole call, over all of its phases. */
import { describe, expect, it } from 'vitest';

import { newModel, openModel, trainTokenizer, Trainer } from '../src/index.js';
import type { Progress } from '../src/index.js';
import { withOverall } from '../src/page/overall.js';
import type { PhaseProgress } from '../src/protocol/reports.js';
import { progressOf } from '../src/worker/progress.js';
import { fake } from '../src/testing/fake-calls.js';
import { fakeWorker } from '../src/testing/channel.js';
import { loseIn } from './losses.js';
import { SHAPE, TEXT, trainerOf } from './runs.js';

/** Returns `overall` after each of these events. */
function overallOf(tag: Parameters<typeof withOverall>[1], events: PhaseProgress[]): number[] {
  const found: number[] = [];
  const listener = withOverall(({ overall }) => found.push(overall), tag);
  events.forEach((event) => listener?.(event));
  return found.map((one) => Number(one.toFixed(4)));
}
const ready = progressOf('ready', undefined, 1, 1);

describe('overall', () => {
  it('gives_each_phase_the_share_of_its_weight_in_what_may_follow', () => {
    const events = [
      progressOf('download', 'a', 0, 300),
      progressOf('download', 'b', 0, 100),
      progressOf('download', 'a', 300, 300),
      progressOf('download', 'b', 100, 100),
      progressOf('verify', 'a', 1, 2),
      progressOf('verify', 'a', 2, 2),
      progressOf('compile', undefined, 0, 1),
      progressOf('upload', undefined, 0, 1),
      ready,
    ];
    // 60 of 90 for the download, 10 of the other 30 for the sums.
    const expected = [0, 0, 0.5, 0.6667, 0.7222, 0.7778, 0.7778, 0.7778, 1];
    expect(overallOf('trainer.create', events)).toEqual(expected);
  });
  it('is_that_of_the_only_phase', () => {
    const events = [0, 1, 2, 4].map((loaded) => progressOf('save', 'a', loaded, 4));
    expect(overallOf('checkpoint.save', events)).toEqual([0, 0.25, 0.5, 1]);
    expect(overallOf('model.export', [progressOf('export', 'a', 1, 2)])).toEqual([0.5]);
    expect(overallOf('device.measure', [progressOf('measure', undefined, 3, 4)])).toEqual([0.75]);
  });
  it('never_falls', () => {
    const events = [
      progressOf('download', 'a', 90, 100),
      // Another file, of which nothing was known.
      progressOf('download', 'b', 0, 900),
      progressOf('verify', 'a', 1, 1),
      // Again from the beginning, after a loss of the worker.
      progressOf('download', 'a', 0, 100),
      progressOf('download', 'a', 100, 100),
      progressOf('upload', undefined, 1, 1),
      progressOf('download', 'a', 50, 100),
      ready,
      progressOf('read', undefined, 0, 1),
    ];
    const expected = [0.6, 0.6, 0.7333, 0.7333, 0.9111, 1, 1, 1, 1];
    expect(overallOf('trainer.create', events)).toEqual(expected);
  });
  it('counts_nothing_of_a_download_without_a_length', () => {
    const unknown: PhaseProgress = { phase: 'download', loaded: 9, total: 9, fraction: 0 };
    expect(overallOf('model.open', [unknown, progressOf('read', undefined, 1, 1)])).toEqual([0, 1]);
  });
  it('is_in_the_progress_of_every_call', async () => {
    const heard: Progress[] = [];
    const onProgress = (progress: Progress): void => void heard.push(progress);
    /** Checks what one call has reported. */
    const check = (last: number): void => {
      const all = heard.splice(0).map(({ overall }) => overall);
      expect(all.length).toBeGreaterThan(0);
      expect(all).toEqual(all.toSorted((a, b) => a - b));
      expect(all.at(-1)).toBe(last);
    };
    const call = { worker: fakeWorker, onProgress };
    await (await openModel(new File(['GGUF....'], 'a.gguf'), call)).dispose();
    check(1);
    await trainTokenizer(TEXT, call);
    check(1);
    const model = await newModel(SHAPE, TEXT, { ...call, tokenizer: { train: 300 } });
    check(1);
    fake.exportBytes = 3e7;
    await model.export({ onProgress });
    check(1);
    await using trainer = await Trainer.create({
      model,
      data: TEXT,
      steps: 3,
      seqLen: 16,
      onProgress,
    });
    check(1);
    await trainer.save({ onProgress });
    check(1);
    await trainer.checkpoints.load({ onProgress });
    check(1);
  });
  it('continues_after_a_loss_of_the_worker', async () => {
    await using trainer = await trainerOf();
    await trainer.step(2);
    fake.exportBytes = 4 * (8 << 20);
    const heard: number[] = [];
    loseIn('chunk', 3);
    await trainer.export({ format: 'json', onProgress: ({ overall }) => void heard.push(overall) });
    expect(heard).toEqual(heard.toSorted((a, b) => a - b));
    expect([heard.length > 4, heard.at(-1)]).toEqual([true, 1]);
  });
});
