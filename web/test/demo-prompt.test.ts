/** The prompt that the demo suggests: the beginning of the chosen text, in its own characters. */
import { expect, it } from 'vitest';

import type { DataPreview } from '../src/index.js';
import { beginning, promptOf } from '../demo/prompt.js';

const RUSSIAN =
  'Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива по-своему.';
const GREEK = 'Ἄνδρα μοι ἔννεπε, Μοῦσα, πολύτροπον, ὃς μάλα πολλὰ';
const JAPANESE =
  '吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。何でも薄暗いじめじめした所で';
const SPACED = '春は\u3000あけぼの。やうやう白くなりゆく山ぎは、すこしあかりて、紫だちたる雲';

it.each([RUSSIAN, GREEK, JAPANESE, SPACED, 'ab\u00a0cd '.repeat(9), 'a\tb'.repeat(20), 'short'])(
  'has_only_characters_of_the_text: %s',
  (text) => {
    const prompt = beginning(text);
    expect(prompt.length).toBeGreaterThan(0);
    expect(text.startsWith(prompt)).toBe(true);
  },
);

it('is_whole_words_of_the_first_line_that_has_some', () => {
  expect(beginning('\r\n  \n  It is a truth universally acknowledged')).toBe('It is a truth ');
  expect(beginning('one\rtwo')).toBe('one');
});

/** Returns an example of segments: read ones, and learned ones in brackets; tokens are separated by `|`. */
const example = (...segments: (string | [string])[]): DataPreview[number] => ({
  row: { file: 0, line: 1, row: 1 },
  segments: segments.map((segment) => {
    const [text] = Array.isArray(segment) ? segment : [segment];
    return {
      text: text.replaceAll('|', ''),
      tokens: text.split('|').map((token, id) => ({ id, text: token })),
      learned: Array.isArray(segment),
    };
  }),
});
it('has_whole_words_of_a_long_text', () => {
  expect(promptOf([{ ...example('I', ['t| is| a| tru']), row: null }], [])).toBe('It is a ');
  expect(promptOf([{ ...example('I', ['t| is|\n|a| tru']), row: null }], [])).toBe('It is');
});
it.each<[string, DataPreview[number], string]>([
  [
    'a text whose first token nothing predicts',
    example('В', ['се| счастливые| семьи']),
    'Все счастливые семьи',
  ],
  ['a text after a beginning-of-text', example('<s>', ['Hello| there']), 'Hello there'],
  ['an answer to a prompt', example('Name| it', [' Paris| of| course<end>']), 'Paris of course'],
  ['an answer in a template', example('<|user|>|Why?|<|bot|>', ['<think>|\n|Hm|</think>']), 'Hm'],
  ['an answer that is empty', example('Why| so', ['<end>']), ''],
  ['nothing that is learned', example('Why| not'), ''],
])('comes_from_what_is_learned: %s', (_, first, expected) => {
  expect(promptOf([first], ['<end>'])).toBe(expected);
  expect(promptOf([example('Q| q', [' \n']), first], ['<end>'])).toBe(expected);
});
