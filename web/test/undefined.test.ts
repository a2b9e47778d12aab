/** Options that are `undefined`: each call treats them as absent. */
import { expect, it } from 'vitest';

import { newModel, openModel, openSavedRuns, Trainer } from '../src/index.js';
import type {
  Call,
  WorkerCall,
  CreateOptions,
  ExportOptions,
  ModelShape,
  NewModelOptions,
  OpenOptions,
  ResumeOptions,
  TrainOptions,
} from '../src/index.js';
import { modelConfig } from '../src/page/fresh-model.js';
import { resumeSettings, trainSettings } from '../src/page/options.js';
import type { DriveOptions } from '../src/page/options.js';
import { importRequest } from '../src/page/requests.js';
import {
  ADAPTER,
  BLOCK_COORDINATE,
  COLUMNS,
  GROUP,
  OPTIMIZERS,
  RUN,
  SAMPLE,
  SCHEDULES,
} from '../src/protocol/generated/kinds.js';
import type { RunSettings } from '../src/protocol/generated/settings.js';
import { fakeWorker } from '../src/testing/channel.js';
import { collect, SHAPE, TEXT } from './runs.js';

/** All keys of `T` that may be absent, so that the compiler finds one that is missing below. */
type None<T> = Record<{ [K in keyof T]-?: undefined extends T[K] ? K : never }[keyof T], undefined>;
const none = (kinds: object): Record<string, undefined> =>
  Object.fromEntries(Object.keys(kinds).map((key) => [key, undefined]));

const CALL: None<Call> = { signal: undefined, onProgress: undefined };
const WORKER: None<Omit<WorkerCall, 'worker'>> = {
  ...CALL,
  wasmUrl: undefined,
  wasmBinary: undefined,
  workerUrl: undefined,
};
const DRIVE: None<DriveOptions> = {
  ...{
    logEvery: undefined,
    evalEvery: undefined,
    evalBatches: undefined,
    autosave: undefined,
    saveEverySecs: undefined,
  },
  ...{
    saveEvery: undefined,
    saveTotalLimit: undefined,
    sampleEvery: undefined,
    samplePrompt: undefined,
    sample: undefined,
  },
  onNonFinite: undefined,
};
const TRAIN: None<Omit<TrainOptions, keyof RunSettings>> = {
  ...{ adapter: undefined, blockCoordinate: undefined, columns: undefined, optimizer: undefined },
  ...{ groups: undefined, lrScheduler: undefined, warmupSteps: undefined, settings: undefined },
};

it('settings_are_absent', () => {
  const all = { ...none(RUN), ...TRAIN, ...DRIVE };
  expect(trainSettings(all)).toEqual(trainSettings({}));
  const { settings: _, ...changes } = TRAIN;
  expect(resumeSettings({ ...none(RUN), ...changes }, [])).toEqual(resumeSettings({}, []));
  const nested = {
    adapter: { ...none(ADAPTER), from: undefined },
    ...{ blockCoordinate: none(BLOCK_COORDINATE), columns: none(COLUMNS), sample: none(SAMPLE) },
    groups: [
      {
        ...none(GROUP),
        pattern: '*',
        optimizer: { type: undefined, ...none(OPTIMIZERS['adamw'] ?? {}) },
      },
    ],
  };
  expect(trainSettings(nested)).toEqual(
    trainSettings({
      adapter: {},
      blockCoordinate: {},
      columns: {},
      sample: {},
      groups: [{ pattern: '*', optimizer: {} }],
    }),
  );
  for (const [of, types] of [
    ['optimizer', OPTIMIZERS] as const,
    ['lrScheduler', SCHEDULES] as const,
  ])
    for (const [type, kinds] of Object.entries(types))
      expect(trainSettings({ [of]: { ...none(kinds), type } })).toEqual(
        trainSettings({ [of]: { type } }),
      );
  const shape: None<ModelShape> = {
    ...{
      architecture: undefined,
      numKeyValueHeads: undefined,
      intermediateSize: undefined,
      headDim: undefined,
    },
    ...{
      maxPositionEmbeddings: undefined,
      normEps: undefined,
      ropeTheta: undefined,
      tieWordEmbeddings: undefined,
    },
    initializerRange: undefined,
  };
  expect(modelConfig({ ...SHAPE, ...shape })).toEqual(modelConfig(SHAPE));
  const selection = {
    includeStateKeys: undefined,
    excludeStateKeys: undefined,
    includePatterns: undefined,
    excludePatterns: undefined,
  };
  expect(
    importRequest({
      selection: { ...selection, allowUnknownExcludes: undefined },
      keyRemap: undefined,
      nonFinite: undefined,
    }),
  ).toEqual(importRequest({ selection: {} }));
});

it('calls_work_without_them', async () => {
  const fresh: None<Omit<NewModelOptions, 'worker'>> = {
    ...{
      tokenizer: undefined,
      bytes: undefined,
      form: undefined,
      columns: undefined,
      onBadRow: undefined,
      ...WORKER,
    },
  };
  const model = await newModel(SHAPE, TEXT, { ...fresh, worker: fakeWorker });
  const created: None<Omit<CreateOptions, keyof TrainOptions | keyof DriveOptions>> = {
    ...{
      validationData: undefined,
      label: undefined,
      keepData: undefined,
      allowNonFinite: undefined,
      state: undefined,
      override: undefined,
      ...CALL,
    },
  };
  const trainer = await Trainer.create({
    model,
    data: TEXT,
    ...none(RUN),
    ...TRAIN,
    ...DRIVE,
    ...created,
    steps: 2,
    seqLen: 16,
  });
  expect(await collect(trainer.run({ signal: undefined, maxSteps: undefined }))).not.toEqual([]);
  expect(
    (await trainer.evaluate({ maxBatches: undefined, signal: undefined })).loss,
  ).toBeGreaterThan(0);
  await trainer.dispose();
  const resumed: None<Omit<ResumeOptions, 'worker'>> = {
    ...{
      generation: undefined,
      data: undefined,
      validationData: undefined,
      base: undefined,
      verify: undefined,
    },
    ...{ settings: undefined, override: undefined, ...WORKER },
  };
  const again = await Trainer.resume({ run: trainer.runId, ...resumed, worker: fakeWorker });
  expect(again.completedSteps).toBe(2);
  await again.dispose();
  const opening: None<Omit<OpenOptions, 'worker'>> = {
    ...{
      request: undefined,
      mergeAdapter: undefined,
      resizeVocabulary: undefined,
      adapter: undefined,
      chatTemplate: undefined,
      allowNonFinite: undefined,
    },
    ...{ hub: undefined, token: undefined, quant: undefined, keepDownloads: undefined },
    ...WORKER,
  };
  using opened = await openModel(new File(['GGUF....'], 'a.gguf'), {
    ...opening,
    worker: fakeWorker,
  });
  const exported: None<ExportOptions> = {
    ...{
      format: undefined,
      type: undefined,
      dtype: undefined,
      base: undefined,
      shardBytes: undefined,
      optimizer: undefined,
    },
    ...{
      manifest: undefined,
      requantise: undefined,
      encoding: undefined,
      allowNonFinite: undefined,
      name: undefined,
      card: undefined,
    },
    ...CALL,
  };
  expect(await opened.exportFiles(exported)).toHaveLength((await opened.exportFiles()).length);
  using runs = await openSavedRuns({
    worker: fakeWorker(),
    signal: undefined,
    workerUrl: undefined,
  });
  expect((await runs.fork(trainer.runId, { generation: undefined, label: undefined })).step).toBe(
    2,
  );
});
