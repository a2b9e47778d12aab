/** Names of models as people type and paste them into the demo, and the words of a download. */
import { describe, expect, it } from 'vitest';

import { hubNameOf, shortNameOf } from '../demo/hub-name.js';
import { progressOf } from '../demo/words.js';

describe('hub_names', () => {
  it.each([
    ['owner/name', 'hf:owner/name', 'name'],
    ['  owner/name@refs/pr/1 ', 'hf:owner/name@refs/pr/1', 'name'],
    ['gpt2', 'hf:gpt2', 'gpt2'],
    ['owner/name@v2', 'hf:owner/name@v2', 'name'],
    ['owner/name/m-Q8_0.gguf', 'hf:owner/name/m-Q8_0.gguf', 'm-Q8_0.gguf'],
    ['hf:owner/name@v2/sub/m.gguf', 'hf:owner/name@v2/sub/m.gguf', 'm.gguf'],
    ['hf://owner/name', 'hf://owner/name', 'name'],
    ['huggingface.co/owner/name', 'https://huggingface.co/owner/name', 'name'],
    ['https://hf.co/owner/name/', 'https://hf.co/owner/name/', 'name'],
    [
      'https://huggingface.co/owner/name/tree/main?x=1',
      'https://huggingface.co/owner/name/tree/main?x=1',
      'name',
    ],
    [
      'https://huggingface.co/owner/name/blob/main/m.gguf?show_file_info=m.gguf',
      'https://huggingface.co/owner/name/blob/main/m.gguf?show_file_info=m.gguf',
      'm.gguf',
    ],
  ])('are_taken: %s', (typed, name, short) => {
    expect(hubNameOf(typed)).toBe(name);
    expect(shortNameOf(name)).toBe(short);
  });
  it.each([
    ['', /^Name a model first: owner\/name/],
    ['a model of mine', /^“a model of mine” is no name of a model: expected owner\/name/],
    ['/home/me/model', /is no name/],
    ['https://elsewhere.example/owner/name', /^This page may contact the Hugging Face Hub only/],
    ['https://huggingface.co.elsewhere.example/a/b', /Hub only/],
    ['file:///home/me/model.gguf', /Hub only/],
    ['https://', /Hub only/],
  ])('are_refused_in_words: "%s"', (typed, words) => {
    expect(() => hubNameOf(typed)).toThrow(words);
  });
});

it('a_download_is_shown_with_its_share_of_the_bytes', () => {
  const file = 'model.safetensors';
  const words = (loaded: number): string =>
    progressOf({
      phase: 'download',
      file,
      loaded,
      total: 269e6,
      fraction: loaded / 269e6,
      overall: 0,
    });
  expect(words(0)).toBe('Downloading model.safetensors …');
  expect(words(91e6)).toBe('Downloading model.safetensors, 34 % of 269 MB …');
  expect(
    progressOf({ phase: 'verify', file, loaded: 1, total: 2, fraction: 0.5, overall: 1 }),
  ).toBe('Checking model.safetensors, 50 % …');
});
