/** Calls with several wrong options: one error has them all, and the known name that each unknown one is most like. */
import { describe, expect, it } from 'vitest';

import {
  extractAdapter,
  inspectData,
  inspectFiles,
  newModel,
  openModel,
  openSavedRuns,
  readTensor,
  TabtuneError,
  trainTokenizer,
  Trainer,
} from '../src/index.js';
import type { Refusal } from '../src/index.js';
import { unknownOption } from '../src/page/nearest-name.js';
import { fakeWorker, started } from '../src/testing/channel.js';
import { SHAPE, TEXT, trainerOf } from './runs.js';

const worker = fakeWorker;
const files = new File(['GGUF....'], 'a.gguf');
/** Returns options that the types refuse. */
const wrong = (options: object): never => options as never;

/** Returns the paths of the refusals of a call, after checking that the error agrees with them. */
async function pathsOf(call: unknown): Promise<string[]> {
  const error = await Promise.resolve(call).then(
    () => expect.fail('nothing was refused'),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof TabtuneError)) throw error;
  const refusals = error.detail.refusals as Refusal[];
  expect([error.code, error.detail.code, error.detail.path]).toEqual([
    'BAD_OPTION',
    'option.invalid',
    refusals[0]?.subject,
  ]);
  expect(error.message).toBe(refusals.map(({ message }) => message).join(' '));
  for (const { expected, found } of refusals) expect([expected, found]).not.toContain(undefined);
  return refusals.map(({ subject = '' }) => subject);
}

describe('several wrong options of a call', () => {
  it('are_in_one_error_with_their_refusals', async () => {
    await using trainer = await trainerOf();
    const before = started.length;
    const data = { text: 'a' };
    const calls: [string[], unknown][] = [
      [
        ['model', 'keepData', 'label', 'learningrate', 'optimizer.beta', 'override[0]'],
        Trainer.create(
          wrong({
            ...{ model: 1, data, keepData: 1, label: 2, learningrate: 1 },
            ...{ optimizer: { type: 'adamw', beta: 1 }, override: [1] },
          }),
        ),
      ],
      [
        ['run', 'generation', 'worker', 'steps', 'verify'],
        Trainer.resume(
          wrong({ run: 1, generation: -1, worker: 1, verify: 'all', settings: { steps: 'x' } }),
        ),
      ],
      [
        ['hub', 'mergeadapter', 'wasmUrl', 'resizeVocabulary', 'chatTemplate', 'request.names'],
        openModel(
          files,
          wrong({
            ...{ hub: 1, mergeadapter: files, wasmUrl: 1, resizeVocabulary: 1, chatTemplate: 1 },
            request: { names: 1 },
          }),
        ),
      ],
      [
        ['onBadRow', 'tokenizers', 'shape.hidden'],
        newModel(wrong({ ...SHAPE, hidden: 1 }), data, wrong({ onBadRow: 1, tokenizers: files })),
      ],
      [['reads', 'format', 'plan'], inspectFiles(files, wrong({ reads: 1, format: 1, plan: 1 }))],
      [['name', 'nmes', 'names'], readTensor(files, wrong({}), wrong({ nmes: 1, names: 1 }))],
      [
        ['show', 'step', 'wasmBinary'],
        inspectData(data, wrong({ show: -1, step: 1, wasmBinary: 1 })),
      ],
      [
        ['vocab', 'minFrequency', 'onBadRow'],
        trainTokenizer(data, wrong({ vocab: 1, minFrequency: -1, onBadRow: 1 })),
      ],
      [
        ['target_modules', 'r'],
        extractAdapter(wrong({ tuned: files, base: files, target_modules: 1 })),
      ],
      [['signals', 'worker'], openSavedRuns(wrong({ signals: 1, worker: 1 }))],
      [['maxSteps', 'max', 'signal'].slice(1), trainer.run(wrong({ max: 1, signal: 1 })).next()],
      [['maxbatches', 'signal'], trainer.evaluate(wrong({ maxbatches: 1, signal: 1 }))],
      [['base', 'tool'], trainer.score('a', wrong({ base: 1, tool: [] }))],
      [
        ['metric', 'top', 'batchsize'],
        trainer.evaluateRows(data, wrong({ top: -1, batchsize: 1 })),
      ],
    ];
    for (const [paths, call] of calls) expect(await pathsOf(call)).toEqual(paths);
    expect(started.length).toBe(before);
    const sampled = (): unknown => trainer.sample(wrong({}), wrong({ max_tokens: 1 }));
    expect(await pathsOf((async () => sampled())())).toEqual(['prompt', 'max_tokens']);
  });
  it('name_the_nearest_of_all_options_of_the_call', async () => {
    for (const [call, near] of [
      [Trainer.create(wrong({ keepdata: 1, model: 1 })), 'keepData'],
      [Trainer.resume(wrong({ run: 'r', generations: 1 })), 'generation'],
      [openModel(files, wrong({ mergeAdapters: files })), 'mergeAdapter'],
      [openModel(files, wrong({ onprogress: 1 })), 'onProgress'],
      [newModel(SHAPE, TEXT, wrong({ tokeniser: files })), 'tokenizer'],
      [inspectFiles(files, wrong({ request_: {} })), 'request'],
      [inspectData(TEXT, wrong({ lr: 1 })), 'learningRate'],
      [inspectData(TEXT, wrong({ wasmurl: '' })), 'wasmUrl'],
      [trainTokenizer(TEXT, wrong({ vocab_size: 1 })), 'vocabSize'],
      [openModel({ url: 'a', sha265: 'b' } as never), 'sha256'],
    ] as const)
      await expect(call).rejects.toThrow(`Did you mean ${near}?`);
  });
  it('do_not_hide_an_abort', async () => {
    const call = openModel(files, wrong({ worker, signal: AbortSignal.abort(), other: 1 }));
    await expect(call).rejects.toMatchObject({ code: 'ABORTED' });
  });
});

describe('the name that was meant', () => {
  const known = ['steps', 'learningRate', 'learningRateScale', 'batchSize', 'weightDecay', 'r'];
  it.each([
    ['learningrate', 'learningRate'],
    ['learning_rate', 'learningRate'],
    ['Learning-Rate', 'learningRate'],
    ['leraningRate', 'learningRate'],
    ['lr', 'learningRate'],
    ['bs', 'batchSize'],
    ['step', 'steps'],
    ['stpes', 'steps'],
    ['batchsizes', 'batchSize'],
    ['weight_decai', 'weightDecay'],
  ])('%s_is_%s', (given, name) => {
    const { message, detail } = unknownOption(`a.${given}`, given, known);
    expect(message).toBe(
      `option a.${given}: expected a known name, found ${JSON.stringify(given)}. Did you mean ${name}?`,
    );
    expect(detail.path).toBe(`a.${given}`);
  });
  it.each(['x', 'epochs', 'toString', '', 'learn', 'learningrate'.repeat(10)])(
    '%s_is_none',
    (given) => {
      expect(unknownOption(given, given, known).message).toContain(
        `expected one of ${known.join(', ')}`,
      );
    },
  );
});
