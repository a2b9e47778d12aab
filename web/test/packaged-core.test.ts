import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { takePackagedCore } from '../packaged-core.mjs';

let place: string;
let taken: string;

/** Returns a package with a core built from the inputs `abc`. */
function packageWith(wasm: string, recorded = wasm): string {
  const folder = join(place, 'package');
  mkdirSync(join(folder, 'dist', 'core'), { recursive: true });
  const sha256 = createHash('sha256').update(recorded).digest('hex');
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ name: 'tabtune', version: '0.0.1', files: ['dist'] }),
  );
  writeFileSync(join(folder, 'dist', 'tabtune_bg.wasm'), wasm);
  writeFileSync(
    join(folder, 'dist', 'core', 'build.json'),
    JSON.stringify({ inputs: 'abc', sha256, sizes: { raw: wasm.length } }),
  );
  writeFileSync(join(folder, 'dist', 'core', 'tabtune.js'), 'export {};');
  return folder;
}

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), 'tabtune-packaged-'));
  taken = join(place, 'pkg');
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(place, { recursive: true });
});

describe('core of a package', () => {
  it('is_copied_from_a_tarball_of_the_same_inputs_and_from_its_folder', () => {
    const folder = packageWith('module');
    const [packed] = JSON.parse(
      execFileSync('npm', ['pack', '--json'], {
        cwd: folder,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }),
    ) as [{ filename: string }];
    for (const named of [join(folder, packed.filename), folder]) {
      vi.stubEnv('TABTUNE_PACKAGE', named);
      expect(takePackagedCore('abc', taken)).toBe(true);
      expect(readdirSync(taken).sort()).toEqual(['build.json', 'tabtune.js', 'tabtune_bg.wasm']);
      expect(readFileSync(join(taken, 'tabtune_bg.wasm'), 'utf8')).toBe('module');
      rmSync(taken, { recursive: true });
    }
  });
  it('of_other_inputs_or_without_a_record_is_not_used', () => {
    vi.stubEnv('TABTUNE_PACKAGE', packageWith('module'));
    mkdirSync(taken);
    writeFileSync(join(taken, 'mine'), '');
    expect(takePackagedCore('abd', taken)).toBe(false);
    rmSync(join(place, 'package', 'dist', 'core'), { recursive: true });
    expect(takePackagedCore('abc', taken)).toBe(false);
    expect(readdirSync(taken)).toEqual(['mine']);
  });
  it('that_is_not_what_its_record_says_is_refused', () => {
    vi.stubEnv('TABTUNE_PACKAGE', packageWith('changed', 'module'));
    expect(() => takePackagedCore('abc', taken)).toThrow(
      /tabtune_bg\.wasm: expected the SHA-256 [0-9a-f]{64} of its build\.json, found/,
    );
  });
  it('that_is_unavailable_is_an_error_with_the_reason', () => {
    vi.stubEnv('TABTUNE_PACKAGE', join(place, 'nowhere.tgz'));
    expect(() => takePackagedCore('abc', taken)).toThrow(
      /TABTUNE_PACKAGE: npm install .*nowhere\.tgz/,
    );
  });
});
