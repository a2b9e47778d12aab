import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { Stages } from '../stages.mjs';

const NAMES = ['npm packages', 'browser core', 'demo server'];
const ADVICE = 'mend it and run this again.';

let written: string;
let stages: Stages;

beforeEach(() => {
  written = '';
  stages = new Stages(NAMES, { alone: false });
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    written += String(text);
    return true;
  });
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe('stages', () => {
  it('number_time_and_last_line_are_shown_while_one_runs', async () => {
    stages.done('npm packages', 'there');
    const ends = stages.run('browser core', ADVICE, async (onLine) => {
      onLine('   Compiling burn v0.22.1');
      await new Promise((resolve) => setTimeout(resolve, 65_000));
      return 7;
    });
    await vi.advanceTimersByTimeAsync(61_000);
    expect(written).toMatch(/^\[1\/3\] npm packages: there\n\[2\/3\] browser core\n/);
    expect(written).toContain('[2/3] browser core: 0:30, Compiling burn v0.22.1\n');
    await vi.advanceTimersByTimeAsync(4000);
    expect(await ends).toBe(7);
    expect(written).toMatch(/\[2\/3\] browser core: done in 1:05\n$/);
  });
  it('crates_are_counted_by_what_cargo_draws', async () => {
    const ends = stages.run('browser core', ADVICE, async (onLine) => {
      onLine('   Compiling burn v0.22.1');
      onLine('    Building [=======>                 ] 123/530: burn, cubecl-ir(build.rs)');
      await new Promise((resolve) => setTimeout(resolve, 31_000));
      throw new Error('cargo build: exit code 101');
    });
    ends.catch(() => undefined);
    await vi.advanceTimersByTimeAsync(31_000);
    await expect(ends).rejects.toThrow('browser core failed');
    expect(written).toContain(
      '[2/3] browser core: 0:30, 123 of 530 crates, Compiling burn v0.22.1\n',
    );
    expect(written).not.toContain('Building [');
  });
  it('a_failed_stage_shows_its_output_and_what_to_do', async () => {
    const failing = stages.run('browser core', ADVICE, async (onLine) => {
      onLine('error[E0308]: mismatched types');
      throw new Error('cargo build: exit code 101');
    });
    await expect(failing).rejects.toThrow('browser core failed');
    expect(written).toContain(
      `error[E0308]: mismatched types\n[2/3] browser core: FAILED after 0:00: cargo build: exit code 101\n  What to do: ${ADVICE}\n`,
    );
  });
  it('a_stage_that_ends_for_another_gives_no_advice_of_its_own', async () => {
    const failing = stages.run('npm packages', ADVICE, async () =>
      Promise.reject(new Error('npm ci: exit code 1')),
    );
    const waiting = stages.run('browser core', 'mend the sources.', async () => failing);
    await expect(waiting).rejects.toThrow('npm packages failed');
    expect(written).toContain('[2/3] browser core: ended, since npm packages failed\n');
    expect(written).not.toContain('mend the sources');
  });
  it('a_stage_that_nobody_announced_is_refused', () => {
    expect(() => {
      stages.done('brotli', 'there');
    }).toThrow('stage: expected one of npm packages, browser core, demo server, found brotli');
  });
});
