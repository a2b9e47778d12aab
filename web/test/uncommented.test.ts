// The browser core's shaders have no comments, and are otherwise unchanged.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';

import { uncommented, withoutComments } from '../uncommented.mjs';

const folder = mkdtempSync(join(tmpdir(), 'tabtune-uncommented-'));
afterAll(() => rmSync(folder, { recursive: true }));

const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};

describe('shaders without comments', () => {
  it('keep their code in its place', () => {
    const text = '// dx = Σ dy\nlet x = a / b; // half\n\n  // more\n  y = x;\n';
    expect(uncommented(text)).toBe('            \nlet x = a / b; // half\n\n         \n  y = x;\n');
  });

  it('stand wherever the module has them, byte for byte as long', () => {
    const text = '// Σ\nx = 1;\n';
    const module = Buffer.concat([Buffer.from([0, 97]), Buffer.from(text), Buffer.from('between'), Buffer.from(text)]);
    const small = withoutComments(module, [file('a.wgsl', text)]);
    expect(small.toString('latin1')).toBe('\0a     \nx = 1;\nbetween     \nx = 1;\n');
    expect(module.includes('Σ')).toBe(true);
  });

  it('are not silently missed', () => {
    expect(() => withoutComments(Buffer.from('other'), [file('b.wgsl', '// b\n')])).toThrow('only 0 of 1');
  });
});
