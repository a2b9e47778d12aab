// Results that the trials of examples-page.mjs must have, and the table of the programs in the package's README.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { filesOf, root } from '../../web/toolchain.mjs';

/** Lines of a program that still reads as documentation. */
const LINES = 60;

/** @param {{ lines: string[], magic: string }} found */
export function fineTuned({ lines, magic }) {
  assert.equal(magic, 'GGUF');
  assert.ok(
    lines.some((line) => line.startsWith('learningRate = ')),
    lines.join('\n'),
  );
  const losses = lines.flatMap((line) => /^step \d+: loss ([\d.]+)$/.exec(line)?.[1] ?? []);
  assert.ok(losses.length > 2 && Number(losses.at(-1)) < Number(losses[0]), losses.join());
}

/** @param {{ right: boolean, sum: number }[]} found */
export function classified(found) {
  assert.ok(found.every(({ sum }) => Math.abs(sum - 1) < 1e-9));
  const right = found.filter((each) => each.right).length;
  assert.equal(right, found.length, `${right} of ${found.length}`);
}

/** @param {any} found */
export function continued(found) {
  assert.ok(found.left >= 2 && found.left < found.totalSteps, `${found.left}`);
  assert.deepEqual([found.saved, found.from, found.others], [found.left, found.left, 0]);
  assert.match(
    found.line,
    new RegExp(`^answers, step ${found.left} of ${found.totalSteps}, loss \\d`),
  );
  assert.deepEqual([found.state, found.completedSteps], ['done', found.totalSteps]);
  assert.equal(found.kept, 0);
}

/** The programs that the package's README does not link, that are longer than a page, or that do not begin with a comment. */
export function unlinked() {
  const readme = readFileSync(join(root, 'web', 'npm', 'README.md'), 'utf8');
  const folder = join(root, 'examples');
  return filesOf(folder).filter((path) => {
    const text = readFileSync(path, 'utf8');
    const [entry = ''] = relative(folder, path).split(/[\\/]/);
    const linked = readme.includes(`/examples/${entry})`);
    return !linked || text.split('\n').length > LINES + 1 || !/^(\/\/|<!--) /.test(text);
  });
}
