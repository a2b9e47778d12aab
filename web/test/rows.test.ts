/** Training data that are rows in memory, and addresses as texts. */
import { describe, expect, it, vi } from 'vitest';

import { inspectData, newModel, trainTokenizer, Trainer } from '../src/index.js';
import type { DataInput, DataRow, Refusal } from '../src/index.js';
import { toData } from '../src/page/data-inputs.js';
import { fakeWorker } from '../src/testing/channel.js';
import { fake, refuse } from '../src/testing/fake-calls.js';
import { SHAPE, TEXT } from './runs.js';

const worker = fakeWorker;
const messages = [
  { role: 'user', content: 'One?' },
  { role: 'assistant', content: 'Two. "\n' },
];
const PAIR = { prompt: 'a', completion: 'b' };

/** Returns the texts of the files that data become, by name. */
async function written(data: unknown, validation?: unknown): Promise<Record<string, string>> {
  const { spec } = await toData(data as DataInput, validation as DataInput);
  const files = [...spec.files, ...spec.validation].map(async (file) => {
    if (file.kind !== 'blob') return [file.name, file.kind] as const;
    return [file.name, await file.blob.text()] as const;
  });
  return Object.fromEntries(await Promise.all(files));
}
const lines = (...rows: unknown[]): string =>
  rows.map((row) => `${JSON.stringify(row)}\n`).join('');

describe('rows', () => {
  it.each<[string, DataRow[] | string[], unknown[]?]>([
    ['chats', [{ messages }, { messages, tools: [{ name: 'f' }] }]],
    ['completions', [PAIR, { prompt: messages.slice(0, 1), completion: messages.slice(1) }]],
    ['texts', [{ text: 'a\u2028b' }, { text: '' }]],
    [
      'strings',
      ['one text', 'https://a.b is an address'],
      [{ text: 'one text' }, { text: 'https://a.b is an address' }],
    ],
    [
      'instructions',
      [{ instruction: 'i', output: 'o', input: undefined }],
      [{ instruction: 'i', output: 'o' }],
    ],
    [
      'own_columns',
      [{ question: 'q', url: 'https://a', name: 'n', nested: { a: [1, null, true, -0.5e-9] } }],
    ],
    ['a_text_among_other_columns', [{ text: 'a', url: 'https://a/b', size: 3 }]],
    [
      'token_ids',
      [{ input_ids: Uint32Array.of(1, 2), labels: Int32Array.of(-100, 2) }],
      [{ input_ids: [1, 2], labels: [-100, 2] }],
    ],
  ])('%s_become_json_lines', async (_, rows, expected = rows) => {
    expect(await written(rows)).toEqual({ 'rows.jsonl': lines(...expected) });
    expect(await written({ files: rows, weight: 2 })).toEqual({ 'rows.jsonl': lines(...expected) });
    expect(await written(TEXT, rows)).toMatchObject({
      'validation-rows.jsonl': lines(...expected),
    });
  });
  it('have_weights_in_a_mixture', async () => {
    const data: DataInput = [
      { files: [PAIR], weight: 2 },
      { files: ['a b'] },
      new File(['c'], 'c.txt'),
    ];
    expect(await written(data)).toEqual({
      '1/rows.jsonl': lines(PAIR),
      '2/rows.jsonl': lines({ text: 'a b' }),
      'c.txt': 'c',
    });
    expect((await toData(data, undefined)).weights).toEqual([2, 1, 1]);
  });
  it('are_written_in_parts_and_end_with_an_abort', async () => {
    const rows = Array.from({ length: 3000 }, (_, at) => ({ text: `${at} ${'x'.repeat(1000)}` }));
    let ticks = 0;
    const timer = setInterval(() => ticks++, 0);
    const { 'rows.jsonl': text } = await written(rows);
    clearInterval(timer);
    expect([text, ticks > 0]).toEqual([lines(...rows), true]);
    const controller = new AbortController();
    const call = toData(rows, undefined, controller.signal);
    controller.abort();
    await expect(call).rejects.toMatchObject({ code: 'ABORTED' });
  });
  it('do_not_follow_a_toJSON_of_the_page', async () => {
    const rows = [{ messages }];
    const expected = { 'rows.jsonl': lines(...rows) };
    for (const prototype of [Object.prototype, Array.prototype])
      Object.defineProperty(prototype, 'toJSON', { value: () => 'x', configurable: true });
    const found = await written(rows);
    for (const prototype of [Object.prototype, Array.prototype])
      Reflect.deleteProperty(prototype, 'toJSON');
    expect(found).toEqual(expected);
  });
  it('go_to_every_call_that_takes_data', async () => {
    const rows: DataRow[] = [{ messages }];
    const [summary] = await inspectData(rows, { worker });
    expect(summary?.name).toBe('rows.jsonl');
    const { json } = await trainTokenizer(['one text', 'two texts'], { worker });
    expect(JSON.parse(new TextDecoder().decode(json))).toMatchObject({ files: ['rows.jsonl'] });
    const model = await newModel(SHAPE, ['one text'], { worker });
    expect(model.info.vocabSize).toBeGreaterThan(5);
    const long = Array.from({ length: 30 }, () => PAIR);
    await using trainer = await Trainer.create({
      model,
      data: long,
      validationData: rows,
      steps: 1,
      seqLen: 16,
    });
    expect((await trainer.checkpoints.save()).dataName).toBe('rows.jsonl');
  });
  it.each<[string, unknown[], string]>([
    ['NaN', [PAIR, { ...PAIR, n: NaN }], 'data[1].n: expected a finite number, found NaN'],
    ['Dates', [{ text: 'a', day: new Date(0) }], 'data[0].day: expected a text'],
    [
      'functions',
      [PAIR, PAIR, { messages: [{ role: 'user', content: () => 1 }] }],
      'data[2].messages[0].content',
    ],
    ['BigInts', [{ text: 'a', id: 5n }], 'data[0].id'],
    ['holes', [{ input_ids: [1, undefined] }], 'data[0].input_ids[1]'],
    ['half_characters', ['a b', 'c \ud800'], 'data[1].text: expected text with whole characters'],
    ['null', [PAIR, null], 'data[1]: expected a row or a text, as data[0] is, found null'],
    ['numbers', [{ messages }, 5], 'data[1]: expected a row or a text, as data[0] is, found 5'],
    [
      'files',
      [PAIR, new File(['a'], 'a.txt')],
      'data[1]: expected a row or a text, as data[0] is, found a File',
    ],
    [
      'addresses',
      ['a text', './a.txt'],
      'data[1]: expected a row or a text, as data[0] is, found "./a.txt"',
    ],
    [
      'rows_after_files',
      [new File(['a'], 'a.txt'), { text: 'a' }, PAIR],
      'data[2]: expected a file or an address, as data[0] is',
    ],
    [
      'names_of_files',
      ['a.jsonl', 'b.jsonl'],
      "data[0]: expected a text, or an address such as './a.jsonl'",
    ],
    ['nothing', [], 'data: expected at least one file or row, found "none"'],
  ])('with_%s_are_refused_by_place', async (_, data, message) => {
    await expect(toData(data as DataInput, undefined)).rejects.toThrow(`option ${message}`);
  });
  it('nested_too_deep_are_refused', async () => {
    let deep: unknown = 1;
    for (let level = 0; level < 200; level++) deep = [deep];
    await expect(toData([{ text: 'a', deep }], undefined)).rejects.toThrow('at most 100 lists');
  });
  it('that_the_core_refuses_are_named_by_their_index', async () => {
    const failing = async (data: DataInput, artifacts: string[]): Promise<unknown> => {
      const model = await newModel(SHAPE, TEXT, { worker });
      const refusals = artifacts.map((artifact, at) => ({
        ...{ code: 'data.row', stage: 'read', artifact, subject: `line ${at + 2}, messages[0]` },
      }));
      const message =
        `${artifacts[0]}: line 2, messages[0]: the row cannot be used. ` +
        `line 3: the row cannot be used: there is line 9 in it, and a.jsonl: line 4: the row cannot be used.`;
      const happen = (): unknown => refuse('BAD_OPTION', 'data.row', message, { refusals });
      fake.failures.push({ call: 'create', at: 0, happen });
      const error: unknown = await Trainer.create({ model, data, steps: 1, seqLen: 16 }).catch(
        (thrown: unknown) => thrown,
      );
      await model.dispose();
      return error;
    };
    const rows: DataInput = [{ messages }, { messages }, { messages }, { messages }];
    expect(await failing(rows, ['rows.jsonl', 'rows.jsonl'])).toMatchObject({
      message:
        'data[1], messages[0]: the row cannot be used. ' +
        'data[2]: the row cannot be used: there is line 9 in it, and a.jsonl: data[3]: the row cannot be used.',
      detail: {
        path: 'data[1]',
        refusal: { subject: 'data[1], messages[0]' },
        refusals: [{ subject: 'data[1], messages[0]' }, { subject: 'data[2], messages[0]' }],
      },
    });
    const mixed = [{ files: rows }, { files: rows, weight: 2 }];
    expect(await failing(mixed, ['2/rows.jsonl'])).toMatchObject({
      message: expect.stringMatching(/^data\[1\]\.files\[1\], messages\[0\]: /) as string,
      detail: { path: 'data[1].files[1]' },
    });
    // A file of that name is the caller's own.
    const own = new File(['{"text": "a long enough text to be learned"}\n'], 'rows.jsonl');
    for (const data of [own, [{ files: rows }, own]])
      expect(await failing(data, ['rows.jsonl'])).toMatchObject({
        message: expect.stringMatching(/^rows\.jsonl: line 2/) as string,
        detail: { refusals: [{ subject: 'line 2, messages[0]' }] as Refusal[] },
      });
  });
});

describe('an address as a text', () => {
  it('is_resolved_as_a_link_of_the_page', async () => {
    vi.stubGlobal('document', { baseURI: 'https://here/app/index.html' });
    const urls = async (data: DataInput): Promise<unknown[]> =>
      (await toData(data, undefined)).spec.files.map((file) =>
        file.kind === 'url' ? file.url : file,
      );
    expect(await urls('./chats.jsonl')).toEqual(['https://here/app/chats.jsonl']);
    expect(await urls('../a.txt')).toEqual(['https://here/a.txt']);
    expect(await urls(['/a.txt', 'https://there/b.txt', { url: 'c.txt' }])).toEqual([
      'https://here/a.txt',
      'https://there/b.txt',
      'https://here/app/c.txt',
    ]);
    vi.unstubAllGlobals();
  });
  it.each(['chats.jsonl', 'Once upon a time', '. a', '/a path with spaces', ''])(
    'is_not_the_text_%s_alone',
    async (text) => {
      await expect(toData(text as './a', undefined)).rejects.toMatchObject({
        detail: { path: 'data' },
        message: expect.stringContaining('or { text } for a text to learn') as string,
      });
    },
  );
});
