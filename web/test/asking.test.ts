/** Generation and scoring: the same for an open model and for a trainer, with the same words. */
import { describe, expect, it, vi } from 'vitest';

import { newModel, openModel, TabtuneError } from '../src/index.js';
import type {
  ChatMessage,
  Finding,
  Model,
  SampledToken,
  SampleEnd,
  ScoredRow,
  Trainer,
} from '../src/index.js';
import { fake, refuse } from '../src/testing/fake-calls.js';
import { fakeWorker } from '../src/testing/channel.js';
import { SHAPE, TEXT, trainerOf } from './runs.js';

const MESSAGES: ChatMessage[] = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: [{ type: 'text', text: '2+2?' }] },
];
const GGUF = (): File => new File([new TextEncoder().encode('GGUF')], 'tiny.gguf');
const modelOf = (): Promise<Model> => openModel(GGUF(), { worker: fakeWorker });

async function whole(
  tokens: AsyncGenerator<SampledToken, SampleEnd | undefined>,
): Promise<[string, SampleEnd | undefined]> {
  let text = '';
  for (;;) {
    const next = await tokens.next();
    if (next.done === true) return [text, next.value];
    text += next.value.text;
  }
}

const refused = (path: string): object => ({ code: 'BAD_OPTION', detail: { path } });
const wrong = (value: unknown): never => value as never;

/** Returns the path of the option that a call refuses at once. */
function pathOf(work: () => unknown): string | undefined {
  try {
    work();
    return undefined;
  } catch (thrown) {
    return thrown instanceof TabtuneError && thrown.code === 'BAD_OPTION'
      ? thrown.detail.path
      : String(thrown);
  }
}

describe.each<[string, () => Promise<(Model | Trainer) & AsyncDisposable>]>([
  [
    'model',
    async () => Object.assign(await modelOf(), { [Symbol.asyncDispose]: async () => undefined }),
  ],
  ['trainer', () => trainerOf()],
])('%s', (_, open) => {
  it('a_conversation_is_answered_token_by_token', async () => {
    await using asked = await open();
    const tools = [{ type: 'function', function: { name: 'add' } }];
    const [text, end] = await whole(
      asked.chat(MESSAGES, { maxTokens: 4, tools, chatTemplateKwargs: { enable_thinking: false } }),
    );
    expect([text.length, end]).toEqual([4, 'length']);
    expect(fake.asked).toEqual([
      { messages: MESSAGES, tools, chat_template_kwargs: { enable_thinking: false } },
    ]);
  });
  it('a_caller_can_stop_reading_an_answer', async () => {
    await using asked = await open();
    for await (const token of asked.chat(MESSAGES, { maxTokens: 50 })) {
      expect(token.text).toHaveLength(1);
      break;
    }
    expect(await asked.detokenize([104, 105])).toBe('hi');
  });
  it('a_score_has_every_token_and_the_loss', async () => {
    await using asked = await open();
    const { tokens, loss } = await asked.score('ab', { top: 1 });
    expect(tokens).toEqual([
      { id: 97, text: 'a', logprob: undefined, rank: undefined, top: [] },
      { id: 98, text: 'b', logprob: -0.5, rank: 1, top: [{ id: 98, text: 'b', prob: 0.5 }] },
    ]);
    expect(loss).toBe(0.5);
    await asked.score(MESSAGES, { generation: true });
    await asked.score([97, 98]);
    await asked.score(Uint32Array.of(97));
    const conversation = { conversation: { messages: MESSAGES }, generation: true, options: {} };
    expect(fake.asked).toEqual([
      { text: 'ab', options: { top: 1 } },
      conversation,
      { ids: [97, 98], options: {} },
      { ids: [97], options: {} },
    ]);
  });
  it('warnings_about_a_text_reach_its_listener_or_the_console', async () => {
    await using asked = await open();
    const told: string[] = [];
    const onWarning = ({ code, message }: Finding): void => void told.push(`${message} [${code}]`);
    const euro: ChatMessage[] = [{ role: 'user', content: '5 €' }];
    const sentence = 'no token for "€" (1) [data.unknown]';
    await whole(asked.chat(euro, { maxTokens: 1, onWarning }));
    if ('tokenize' in asked) await asked.tokenize('5 €', { onWarning });
    else await whole(asked.sample('5 €', { maxTokens: 1, onWarning }));
    expect(told).toEqual([sentence, sentence]);
    const logged = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    await whole(asked.chat(euro, { maxTokens: 1 }));
    expect(logged.mock.calls).toEqual([[`tabtune: ${sentence}`]]);
    logged.mockRestore();
    expect((await asked.score('5 €')).warnings.map(({ code }) => code)).toEqual(['data.unknown']);
    expect(pathOf(() => asked.chat(euro, { onWarning: wrong(1) }))).toBe('onWarning');
  });
  it('the_base_answers_if_the_option_asks_for_it', async () => {
    await using asked = await open();
    await whole(asked.chat(MESSAGES, { maxTokens: 2, base: true }));
    await asked.score('ab', { base: true });
    expect(fake.asked).toEqual([
      { messages: MESSAGES, base: true },
      { text: 'ab', options: {}, base: true },
    ]);
    expect(pathOf(() => asked.chat(MESSAGES, { base: wrong(1) }))).toBe('base');
    await expect(asked.score('ab', { base: wrong('yes') })).rejects.toMatchObject(refused('base'));
    await expect(asked.score([97, -1])).rejects.toMatchObject(refused('ids[1]'));
    await expect(asked.score([97], { tools: [] })).rejects.toMatchObject(refused('tools'));
  });
  it('a_custom_metric_is_called_with_each_row', async () => {
    await using asked = await open();
    const rows = { text: '{"a": 1}\n{"a": 2}\n{"a": 3}\n', name: 'rows.jsonl' };
    const seen: ScoredRow[] = [];
    const metric = async (row: ScoredRow): Promise<number> => {
      seen.push(row);
      // The weights can be queried in the meantime.
      const [text] = await whole(asked.chat(MESSAGES, { maxTokens: 2 }));
      return (row.row?.line ?? 0) * text.length;
    };
    const report = await asked.evaluateRows(rows, { metric, top: 1, lossOn: 'last' });
    expect(report).toEqual({ metric: 4, values: [2, 4, 6], loss: 0.5, accuracy: 1, tokens: 3 });
    expect(seen.map(({ row, loss, accuracy }) => [row, loss, accuracy])).toEqual(
      [1, 2, 3].map((line) => [{ file: 0, line, row: line }, 0.5, 1]),
    );
    expect(seen[0]?.tokens.map(({ id, learned, logprob }) => [id, learned, logprob])).toEqual([
      [97, false, undefined],
      [98, true, -0.5],
    ]);
    const questions = [
      { loss_on: 'last' },
      ...[1, 2, 3].flatMap(() => [{ ids: [97, 98], options: { top: 1 } }, { messages: MESSAGES }]),
    ];
    expect(fake.asked).toEqual(questions);
    const broken = new Error('of the metric');
    await expect(asked.evaluateRows(rows, { metric: () => Promise.reject(broken) })).rejects.toBe(
      broken,
    );
    await expect(asked.evaluateRows(rows, { metric: () => Number.NaN })).rejects.toMatchObject(
      refused('metric'),
    );
    await expect(asked.evaluateRows(rows, wrong({}))).rejects.toMatchObject(refused('metric'));
    await expect(asked.evaluateRows(rows, wrong({ metric: 'accuracy' }))).rejects.toMatchObject(
      refused('metric'),
    );
    await expect(asked.evaluateRows(rows, wrong({ metric, lossAt: 'all' }))).rejects.toMatchObject(
      refused('lossAt'),
    );
    await expect(asked.evaluateRows({ text: '\n' }, { metric })).rejects.toMatchObject(
      refused('data'),
    );
  });
  it('an_invalid_request_is_refused_with_the_path_of_the_fault', async () => {
    await using asked = await open();
    expect(pathOf(() => asked.chat(wrong('hi')))).toBe('messages');
    expect(pathOf(() => asked.chat([wrong('hi')]))).toBe('messages[0]');
    expect(pathOf(() => asked.chat(MESSAGES, wrong({ tool: [] })))).toBe('tool');
    expect(pathOf(() => asked.chat(MESSAGES, { tools: wrong({}) }))).toBe('tools');
    await expect(asked.score('ab', wrong({ tops: 1 }))).rejects.toMatchObject(refused('tops'));
    await expect(asked.score('ab', { generation: true })).rejects.toMatchObject(
      refused('generation'),
    );
    await expect(asked.score(wrong(3))).rejects.toMatchObject(refused('messages'));
    await expect(asked.detokenize(wrong('12'))).rejects.toMatchObject(refused('ids'));
    await expect(asked.detokenize([1, -1])).rejects.toMatchObject(refused('ids[1]'));
  });
});

it('a_model_puts_its_weights_on_the_gpu_once_and_takes_them_off_for_a_run', async () => {
  const model = await modelOf();
  expect(fake.loaded).toBe(0);
  await Promise.all([model.score('ab'), whole(model.chat(MESSAGES, { maxTokens: 2 }))]);
  expect(fake.loaded).toBe(1);
  fake.onCall = ({ call }) => (call === 'create' ? void expect(fake.loaded).toBe(0) : undefined);
  await using trainer = await trainerOf({ model });
  await expect(trainer.score('ab')).resolves.toMatchObject({ loss: 0.5 });
  expect(fake.loaded).toBe(0);
});

it('a_refused_loading_is_tried_again', async () => {
  const model = await modelOf();
  fake.onCall = ({ call }) =>
    call === 'load' ? refuse('OUT_OF_MEMORY', 'device.limit', 'a buffer of 9 GiB') : undefined;
  await expect(model.score('ab')).rejects.toMatchObject({ code: 'OUT_OF_MEMORY' });
  fake.onCall = undefined;
  expect(await model.score('ab')).toMatchObject({ loss: 0.5 });
});

it('questions_to_a_model_that_a_trainer_has_are_refused', async () => {
  const model = await newModel(SHAPE, TEXT, { worker: fakeWorker });
  await using trainer = await trainerOf({ model });
  expect(trainer.completedSteps).toBe(0);
  await expect(model.score('ab')).rejects.toMatchObject({ detail: { code: 'model.taken' } });
  await expect(model.chat(MESSAGES).next()).rejects.toMatchObject({
    detail: { code: 'model.taken' },
  });
});
