import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import type { Stages } from '../stages.mjs';

const NAMES = ['npm packages', 'browser core', 'demo server'];
const ADVICE = 'mend it and run this again.';

let cache: string;
let written: string;

/** Returns the stages of a process that has just started, with its own folder of timings. */
async function fresh(): Promise<Stages> {
  vi.resetModules();
  const { Stages } = await import('../stages.mjs');
  return new Stages(NAMES, { alone: false });
}

beforeEach(() => {
  cache = mkdtempSync(join(tmpdir(), 'tabtune-stages-'));
  written = '';
  vi.stubEnv('XDG_CACHE_HOME', cache);
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    written += String(text);
    return true;
  });
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  rmSync(cache, { recursive: true });
});

describe('stages', () => {
  it('number_time_and_expectation_are_shown_while_one_runs', async () => {
    const stages = await fresh();
    stages.done('npm packages', 'there');
    const ends = stages.run('browser core', { key: 'browser core, quick', advice: ADVICE }, async (onLine) => {
      onLine('   Compiling burn v0.22.1');
      await new Promise((resolve) => setTimeout(resolve, 65_000));
      return 7;
    });
    await vi.advanceTimersByTimeAsync(61_000);
    expect(written).toMatch(/^\[1\/3\] npm packages: there\n\[2\/3\] browser core: about 0:40\n/);
    expect(written).toContain('[2/3] browser core: 0:30 of about 0:40, Compiling burn v0.22.1\n');
    expect(written).toContain('[2/3] browser core: 1:00 of about 1:06 (0:40 on a quiet machine), Compiling burn v0.22.1\n');
    await vi.advanceTimersByTimeAsync(4000);
    expect(await ends).toBe(7);
    expect(written).toMatch(/\[2\/3\] browser core: done in 1:05\n$/);
  });
  it('the_last_run_here_is_expected_of_the_next', async () => {
    const run = (stages: Stages): Promise<void> =>
      stages.run('demo server', { advice: ADVICE }, () => new Promise((resolve) => setTimeout(resolve, 130_000)));
    for (const stages of [await fresh(), await fresh()]) {
      const ends = run(stages);
      await vi.advanceTimersByTimeAsync(130_000);
      await ends;
    }
    expect([...written.matchAll(/demo server: about (.+)/g)].map(([, words]) => words)).toEqual(['0:02', '2:10, as last time']);
  });
  it('an_estimate_follows_how_far_the_stage_is_and_is_never_left_standing', async () => {
    const { outlook } = await import('../stages.mjs');
    // Nothing known, something known, and a known duration exceeded.
    expect(outlook({ seconds: 7 })).toBe('');
    expect(outlook({ seconds: 100, last: 300 })).toBe(' of about 5:00');
    expect(outlook({ seconds: 400, last: 300 })).toBe(' of about 7:20 (5:00 last time)');
    // A third done after 200 s.
    expect(outlook({ seconds: 200, last: 300, usual: 30, progress: 1 / 3 })).toBe(' of about 10:00 (5:00 last time)');
    expect(outlook({ seconds: 200, usual: 300, progress: 1 / 3 })).toBe(' of about 10:00 (5:00 on a quiet machine)');
    // One line of many has arrived, which says that it waits: no estimate of hours.
    expect(outlook({ seconds: 108, last: 498, progress: 1 / 145 })).toBe(' of about 8:18');
    // Small items come first, so an early finish is not promised.
    expect(outlook({ seconds: 20, last: 300, progress: 0.5 })).toBe(' of about 5:00');
  });
  it('a_stage_that_has_told_how_far_it_is_is_believed', async () => {
    const stages = await fresh();
    const ends = stages.run('browser core', { key: 'browser core, quick', advice: ADVICE }, async (onLine) => {
      onLine('5 of 20', 0.25);
      await new Promise((resolve) => setTimeout(resolve, 31_000));
    });
    await vi.advanceTimersByTimeAsync(31_000);
    await ends;
    expect(written).toContain('[2/3] browser core: 0:30 of about 2:00 (0:40 on a quiet machine), 5 of 20\n');
  });
  it('a_failed_stage_shows_its_output_and_what_to_do_and_is_not_remembered', async () => {
    const stages = await fresh();
    const failing = stages.run('browser core', { advice: ADVICE }, async (onLine) => {
      onLine('error[E0308]: mismatched types');
      throw new Error('cargo build: exit code 101');
    });
    await expect(failing).rejects.toThrow('browser core failed');
    expect(written).toContain(
      `error[E0308]: mismatched types\n[2/3] browser core: FAILED after 0:00: cargo build: exit code 101\n  What to do: ${ADVICE}\n`,
    );
    expect(() => readFileSync(join(cache, 'tabtune', 'stage-times.json'))).toThrow('ENOENT');
  });
  it('a_stage_that_ends_for_another_gives_no_advice_of_its_own', async () => {
    const stages = await fresh();
    const failing = stages.run('npm packages', { advice: ADVICE }, async () => Promise.reject(new Error('npm ci: exit code 1')));
    const waiting = stages.run('browser core', { advice: 'mend the sources.' }, async () => failing);
    await expect(waiting).rejects.toThrow('npm packages failed');
    expect(written).toContain('[2/3] browser core: ended, since npm packages failed\n');
    expect(written).not.toContain('mend the sources');
  });
  it('a_stage_that_nobody_announced_is_refused', async () => {
    const stages = await fresh();
    expect(() => stages.done('brotli', 'there')).toThrow('stage: expected one of npm packages, browser core, demo server, found brotli');
  });
});
