/** The names of the files that the demo offers, which come from the label of a run. */
import { expect, it } from 'vitest';

import { checkpointName, exportName, stemOf } from '../demo/names.js';
import { EXPORT_WORDS } from '../src/protocol/generated/exports.js';

it.each([
  ['small Llama on Pride and Prejudice', 'small-llama-on-pride-and-prejudice'],
  ['tiny.gguf on chats.jsonl and 2 more', 'tiny-on-chats-and-2-more'],
  ['Qwen/Qwen2.5-0.5B on Grün.csv', 'qwen-qwen2.5-0.5b-on-grun'],
  ['../../etc/passwd', 'etc-passwd'],
  ['a"b$(c)`d`\n\u202e', 'a-b-c-d'],
  ['', 'model'],
  ['吾輩は猫である', 'model'],
  ['NUL', 'nul-model'],
  ['a.text.b', 'a-text-b'],
])('is_safe: %s', (label, stem) => {
  expect(stemOf(label)).toBe(stem);
});

it('is_short', () => {
  const stem = stemOf(`${'long '.repeat(12)}and more`);
  expect(stem.length).toBeLessThanOrEqual(60);
  expect(stem).toMatch(/long$/);
});

it('differs_in_every_format', () => {
  const names = EXPORT_WORDS.map((format) => exportName('mine', format));
  expect(names).toEqual([
    'mine.zip',
    'mine.gguf',
    'mine.state_dict.json',
    'mine-adapter.zip',
    'mine-adapter.gguf',
  ]);
});

it('has_the_step_of_a_checkpoint', () => {
  expect(checkpointName('small Llama on Pride and Prejudice-step-12.tabtune')).toBe(
    'small-llama-on-pride-and-prejudice-step-12.tabtune',
  );
});
