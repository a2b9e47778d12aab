/** Vocabularies that are learned from data: the requests to the core, and new models with them. */
import { describe, expect, it } from 'vitest';

import { newModel, trainTokenizer } from '../src/index.js';
import type { Progress, TrainedTokenizer } from '../src/index.js';
import { fakeWorker } from '../src/testing/channel.js';
import { fake } from '../src/testing/fake-calls.js';

const SHAPE = { hiddenSize: 32, numHiddenLayers: 1, numAttentionHeads: 2 };
const DATA = [
  { text: 'one two', name: 'a.txt' },
  { text: 'three', name: 'b.txt' },
];
const worker = fakeWorker;

/** The document that the fake core wrote. */
const said = ({ json }: TrainedTokenizer): unknown => JSON.parse(new TextDecoder().decode(json));

describe('a tokenizer that is trained', () => {
  it('has_the_settings_and_data_of_the_call', async () => {
    const heard: unknown[] = [];
    const made = await trainTokenizer(DATA, {
      ...{ vocabSize: 300, minFrequency: 0, specialTokens: ['<e>'], onBadRow: 'skip', worker },
      onProgress: ({ phase, fraction }: Progress) => heard.push([phase, fraction]),
    });
    expect(made.vocabSize).toBe(300);
    expect(said(made)).toEqual({
      options: { vocab_size: 300, min_frequency: 0, special_tokens: ['<e>'] },
      settings: { on_bad_row: 'skip' },
      partial: false,
      files: ['a.txt', 'b.txt'],
    });
    expect(heard).toEqual([
      ['read', 3.5 / 12],
      ['read', 1],
      ['ready', 1],
    ]);
    expect(said(await trainTokenizer(DATA, { worker }))).toMatchObject({ options: {} });
  });
  it('refuses_wrong_options_by_their_path', async () => {
    for (const [path, more] of [
      ['vocabSize', { vocabSize: 0 }],
      ['minFrequency', { minFrequency: -1 }],
      ['specialTokens', { specialTokens: '<e>' }],
      ['specialTokens[0]', { specialTokens: [1] }],
      ['form', { form: 'poem' }],
      ['vocabulary', { vocabulary: 3 }],
    ] as const) {
      const refused = trainTokenizer(DATA, { worker, ...(more as object) });
      await expect(refused).rejects.toMatchObject({ code: 'BAD_OPTION', detail: { path } });
    }
    // @ts-expect-error a string is no data
    await expect(trainTokenizer('text', { worker })).rejects.toMatchObject({ code: 'BAD_OPTION' });
  });
  it('ends_when_its_signal_is_aborted', async () => {
    const controller = new AbortController();
    const going = trainTokenizer(DATA, {
      ...{ worker, signal: controller.signal },
      onProgress: () => controller.abort(),
    });
    await expect(going).rejects.toMatchObject({ name: 'AbortError' });
  });
});

describe('a new model', () => {
  const given = async (tokenizer: object, more: object = {}): Promise<unknown> => {
    await (await newModel(SHAPE, DATA, { tokenizer, worker, ...more } as object)).dispose();
    return JSON.parse(new TextDecoder().decode(fake.tokenizer));
  };

  it('takes_a_trained_tokenizer_or_trains_its_own', async () => {
    const made = await trainTokenizer(DATA, { vocabSize: 300, worker });
    expect(await given(made.json)).toEqual(said(made));
    expect(await given({ train: 400 })).toMatchObject({
      options: { vocab_size: 400 },
      files: ['a.txt', 'b.txt'],
    });
    expect(await given({ train: { specialTokens: ['<e>'] } }, { form: 'text' })).toMatchObject({
      options: { special_tokens: ['<e>'] },
      settings: { form: 'text' },
    });
    await (await newModel(SHAPE, DATA, { worker })).dispose();
    expect(fake.tokenizer).toBeUndefined();
  });
  it('refuses_a_vocabulary_that_cannot_be_learned', async () => {
    for (const [path, tokenizer] of [
      ['tokenizer.train.vocabSize', { train: 0 }],
      ['tokenizer.train', { train: 'all' }],
      ['tokenizer.train.vocab', { train: { vocab: 1 } }],
      ['tokenizer.vocabSize', { train: 300, vocabSize: 300 }],
    ] as const) {
      await expect(given(tokenizer)).rejects.toMatchObject({
        code: 'BAD_OPTION',
        detail: { path },
      });
    }
    const tokens = { tokens: Uint32Array.of(1, 2, 3) };
    const refused = newModel(SHAPE, tokens, { tokenizer: { train: 300 }, worker });
    await expect(refused).rejects.toMatchObject({ code: 'BAD_OPTION', detail: { path: 'data' } });
  });
});
