/** The prompt that the demo suggests: the beginning of the chosen text, in its own characters. */
import { expect, it } from 'vitest';

import { beginning, promptOf } from '../demo/prompt.js';

const RUSSIAN = 'Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива по-своему.';
const GREEK = 'Ἄνδρα μοι ἔννεπε, Μοῦσα, πολύτροπον, ὃς μάλα πολλὰ';
const JAPANESE = '吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。何でも薄暗いじめじめした所で';
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

it.each([
  ['chats.jsonl', JSON.stringify({ messages: [{ role: 'user', content: RUSSIAN }] }), 'Все счастливые семьи '],
  [
    'long.jsonl',
    JSON.stringify({
      id: 'x',
      messages: [
        { content: [{ type: 'text', text: JAPANESE }], role: 'user' },
        { role: 'assistant', content: 'a'.repeat(20_000) },
      ],
    }),
    JAPANESE.slice(0, 24),
  ],
  ['prompts.jsonl', `\n${JSON.stringify({ prompt: GREEK, completion: 'x' })}\n{"prompt":"y"}`, 'Ἄνδρα μοι ἔννεπε, '],
  ['sharegpt.jsonl', JSON.stringify({ conversations: [{ from: 'human', value: 'Hello there' }] }), 'Hello there'],
  ['text.txt', `\ufeff${JAPANESE}`, JAPANESE.slice(0, 24)],
  ['ids.tokens', 'abcd', ''],
])('comes_from_the_data: %s', async (name, text, expected) => {
  expect(await promptOf(new File([text], name))).toBe(expected);
});
