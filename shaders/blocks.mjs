// Writes the unrolled shaders `*_block.wgsl` and the tiled ones, from their templates in shaders/blocks.
//   node shaders/blocks.mjs            writes them
//   node shaders/blocks.mjs --check    compares them with the expected output, and names those that differ
// Each sum of a block is a separate variable (a0, b0 … d31), so a shader repeats each step for every row; a template states it once.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as attention from './blocks/attention.mjs';
import * as attentionKeyTile from './blocks/attention_key_tile.mjs';
import * as attentionTile from './blocks/attention_tile.mjs';
import { layout } from './blocks/layout.mjs';
import * as linear from './blocks/linear.mjs';
import * as linearAny from './blocks/linear_any.mjs';
import { forwardTile, inputTile } from './blocks/tile.mjs';
import * as backward from './blocks/tile_backward.mjs';

/** Templates of tiles of two sizes. */
const inBothSizes = (templates) =>
  Object.fromEntries(
    Object.entries(templates).flatMap(([name, template]) => [
      [name, template(64)],
      [`${name}_small`, template(32)],
    ]),
  );

/** Templates by the folder of their shaders. */
const TEMPLATES = {
  chunks: inBothSizes({ forward_tile: forwardTile, input_tile: inputTile }),
  'ops/linear': {
    ...linear,
    ...linearAny,
    ...inBothSizes({
      linear_backward_tile: backward.linearBackwardTile,
      linear_backward_three_tile: backward.linearBackwardThreeTile,
      linear_backward_two_tile: backward.linearBackwardTwoTile,
    }),
  },
  'ops/attention': { ...attention, ...attentionTile, ...attentionKeyTile },
};

function made() {
  return Object.entries(TEMPLATES).flatMap(([folder, templates]) =>
    Object.entries(templates).map(([name, template]) => ({
      shown: `shaders/${folder}/${name}.wgsl`,
      path: join(import.meta.dirname, folder, `${name}.wgsl`),
      text: layout(name, template),
    })),
  );
}

function main(args) {
  const asked = args.join(' ');
  if (asked !== '' && asked !== '--check')
    throw new Error(`expected --check or nothing, found ${asked}`);
  const outdated = made().filter(
    ({ path, text }) => !existsSync(path) || readFileSync(path, 'utf8') !== text,
  );
  if (asked === '') {
    outdated.forEach(({ shown, path, text }) => {
      writeFileSync(path, text);
      console.log(`${shown}: written`);
    });
    return 0;
  }
  outdated.forEach(({ shown }) =>
    console.error(`${shown}: differs from its template in shaders/blocks`),
  );
  if (outdated.length > 0)
    console.error('Change the template, not the shader, then run: node shaders/blocks.mjs');
  return outdated.length === 0 ? 0 : 1;
}

try {
  process.exitCode = main(process.argv.slice(2));
} catch (/** @type {any} */ error) {
  console.error(`blocks: ${error.message}`);
  process.exitCode = 1;
}
