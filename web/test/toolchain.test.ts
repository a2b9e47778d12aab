import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';

import { ownTarget } from '../toolchain.mjs';

it('packages_compiled_by_another_checkout_are_removed_once', () => {
  const target = mkdtempSync(join(tmpdir(), 'tabtune-target-'));
  try {
    const prints = ['debug', join('wasm32-unknown-unknown', 'wasm')].map((profile) =>
      join(target, profile, '.fingerprint'),
    );
    const packages = ['tabtune-native-36ed063c', 'burn-flex-36ed063c'].map((name) =>
      prints.map((folder) => join(folder, name)),
    );
    const made = () => packages.flat().forEach((folder) => mkdirSync(folder, { recursive: true }));
    const there = () => packages.map((folders) => folders.map((folder) => existsSync(folder)));
    made();
    ownTarget(target, '/one');
    expect(there()).toEqual([
      [false, false],
      [true, true],
    ]);
    made();
    ownTarget(target, '/one');
    expect(there()).toEqual([
      [true, true],
      [true, true],
    ]);
    ownTarget(target, '/two');
    expect(there()).toEqual([
      [false, false],
      [true, true],
    ]);
  } finally {
    rmSync(target, { recursive: true });
  }
});
