import { describe, expect, it } from 'vitest';

import { resumeSettings, runSettings, trainSettings } from '../src/page/options.js';
import { TabtuneError } from '../src/protocol/errors.js';
import { ADAPTER, GROUP, OPTIMIZERS, RUN, SCHEDULES } from '../src/protocol/generated/kinds.js';
import type { GroupOptions } from '../src/page/options.js';

const config = (options: object): unknown => runSettings(options);
const pathOf = (options: object): string | undefined => {
  try {
    trainSettings(options);
    return undefined;
  } catch (thrown) {
    if (!(thrown instanceof TabtuneError)) throw thrown;
    expect(thrown.code).toBe('BAD_OPTION');
    return thrown.detail.path;
  }
};

describe('options', () => {
  it('camel_case_becomes_the_names_of_rust', () => {
    const options = {
      steps: 20,
      batchSize: 2,
      gradientAccumulationSteps: 3,
      warmupSteps: 4,
      maxGradNorm: 0,
      lrScheduler: { type: 'cosine', minLearningRate: 1e-5 },
      optimizer: { type: 'adamw', weightDecay: 0.1 },
      precision: 'bf16',
      documentMask: true,
    };
    expect(config(options)).toEqual({
      steps: 20,
      batch_size: 2,
      gradient_accumulation_steps: 3,
      max_grad_norm: 0,
      optimizer: { type: 'adamw', weight_decay: 0.1 },
      precision: 'bf16',
      document_mask: true,
      schedule: { type: 'cosine', min_learning_rate: 1e-5, warmup_steps: 4 },
    });
  });
  it('nothing_given_leaves_the_defaults_to_the_core', () => {
    expect(config({})).toEqual({});
    expect(config({ warmupSteps: 3 })).toEqual({ schedule: { warmup_steps: 3 } });
    expect(trainSettings({}).driver.sample).toEqual({});
  });
  it('resume_settings_contain_only_the_given_ones', () => {
    expect(
      resumeSettings({ learningRate: 1e-4, warmupSteps: 2 }, [
        'learningRate',
        'warmupSteps',
        'lrScheduler.totalSteps',
        'optimizer.weightDecay',
        'all',
      ]),
    ).toEqual({
      config: { learning_rate: 0.0001, schedule: { warmup_steps: 2 } },
      override: [
        'learning_rate',
        'schedule.warmup_steps',
        'schedule.total_steps',
        'optimizer.weight_decay',
        'all',
      ],
    });
    expect(resumeSettings({}, [])).toEqual({ config: {}, override: [] });
  });
  it('groups_are_translated_with_their_optimizers', () => {
    expect(
      config({
        groups: [
          { pattern: '*norm*', frozen: true },
          { pattern: '*', optimizer: { type: 'apollo', rank: 1, updateSteps: 10 } },
        ],
      }),
    ).toMatchObject({
      groups: [
        { pattern: '*norm*', frozen: true },
        { pattern: '*', optimizer: { type: 'apollo', rank: 1, update_steps: 10 } },
      ],
    });
  });
  it('groups_may_be_the_preset_or_extend_the_optimizer_of_the_run', () => {
    expect(config({ groups: 'no_decay' })).toMatchObject({ groups: 'no_decay' });
    const groups: GroupOptions[] = [
      { pattern: '*bias', optimizer: { weightDecay: 0, beta1: 0.8 } },
      { pattern: '*', optimizer: { type: 'sgd', momentum: 0.9 } },
    ];
    expect(config({ groups })).toMatchObject({
      groups: [
        { pattern: '*bias', optimizer: { weight_decay: 0, beta1: 0.8 } },
        { optimizer: { type: 'sgd', momentum: 0.9 } },
      ],
    });
  });
  it('adapters_keep_the_names_of_modules', () => {
    const adapter = {
      r: 4,
      targetModules: ['q_proj'],
      layersToTransform: 1,
      rankPattern: { v_proj: 2, q_proj: 3 },
      modulesToSave: ['norm'],
      init: true,
    } as const;
    const given = { ...adapter, targetModules: ['q_proj'], modulesToSave: ['norm'] };
    expect(config({ adapter: given, baseStorage: 'bf16' })).toEqual({
      adapter: {
        r: 4,
        target_modules: ['q_proj'],
        layers_to_transform: 1,
        rank_pattern: { v_proj: 2, q_proj: 3 },
        modules_to_save: ['norm'],
        init: true,
      },
      base_storage: 'bf16',
    });
    expect(
      Object.keys(
        (config({ adapter: given }) as { adapter: { rank_pattern: object } }).adapter.rank_pattern,
      ),
    ).toEqual(['v_proj', 'q_proj']);
    expect(
      config({
        adapter: { targetModules: 'all-linear', layersToTransform: [0, 2], init: 'gaussian' },
      }),
    ).toMatchObject({ adapter: { target_modules: 'all-linear', init: 'gaussian' } });
    expect(config({ adapter: null })).toEqual({ adapter: null });
  });
  it('block_coordinates_become_the_names_of_rust', () => {
    const blockCoordinate = {
      blocks: 2,
      interval: 10,
      order: 'descending',
      embedding: true,
      norm: false,
      head: false,
    } as const;
    expect(config({ blockCoordinate })).toEqual({
      block_coordinate: {
        blocks: 2,
        interval: 10,
        order: 'descending',
        embedding: true,
        norm: false,
        head: false,
      },
    });
    expect(config({ blockCoordinate: {} })).toEqual({ block_coordinate: {} });
    expect(
      resumeSettings({ blockCoordinate: null }, ['blockCoordinate', 'blockCoordinate.interval']),
    ).toEqual({
      config: { block_coordinate: null },
      override: ['block_coordinate', 'block_coordinate.interval'],
    });
  });
  it('all_invalid_options_are_reported_in_one_error', () => {
    const options = {
      learningrate: 1,
      batchSize: 1.5,
      optimizer: { type: 'adamw', rank: 3, beta1: '2' },
      saveEvery: -1,
      groups: [{ pattern: 1 }, { frozen: 1, optimizer: { type: 'no-such-rule' } }],
      sample: { temperatur: 1 },
    };
    let message = '';
    try {
      trainSettings(Object.assign({}, options as object));
    } catch (thrown) {
      if (!(thrown instanceof TabtuneError)) throw thrown;
      expect([thrown.code, thrown.detail.path]).toEqual(['BAD_OPTION', 'learningrate']);
      ({ message } = thrown);
    }
    expect(message.match(/option [^ :]+(?=:)/g)).toEqual([
      'option learningrate',
      'option batchSize',
      'option optimizer.rank',
      'option optimizer.beta1',
      'option saveEvery',
      'option groups[0].pattern',
      'option groups[1].frozen',
      'option groups[1].optimizer.type',
      'option sample.temperatur',
    ]);
  });
  it.each([
    [{ learningrate: 1 }, 'learningrate'],
    [{ batchSize: 1.5 }, 'batchSize'],
    [{ learningRate: NaN }, 'learningRate'],
    [{ learningRate: '1' }, 'learningRate'],
    [{ optimizer: { type: 'no-such-rule' } }, 'optimizer.type'],
    [{ optimizer: { type: 'adamw', rank: 3 } }, 'optimizer.rank'],
    [{ optimizer: { type: 'toString' } }, 'optimizer.type'],
    [{ optimizer: 'adamw' }, 'optimizer'],
    [{ lrScheduler: { type: 'wsd', decayType: 'cosine' } }, 'lrScheduler.decayType'],
    [{ groups: [{ pattern: 'a', lr: 1 }] }, 'groups[0].lr'],
    [{ groups: 'nodecay' }, 'groups'],
    [{ groups: [{ pattern: 'a', optimizer: { lr: 1 } }] }, 'groups[0].optimizer.lr'],
    [{ optimizer: { beta1: 0.9 } }, 'optimizer.type'],
    [{ warmupSteps: 1, lrScheduler: { type: 'cosine', warmupSteps: 1 } }, 'warmupSteps'],
    [{ precision: 'f16' }, 'precision'],
    [{ baseStorage: 'q4' }, 'baseStorage'],
    [{ blockCoordinate: 1 }, 'blockCoordinate'],
    [{ blockCoordinate: { blocks: 1.5 } }, 'blockCoordinate.blocks'],
    [{ blockCoordinate: { order: 'random' } }, 'blockCoordinate.order'],
    [{ blockCoordinate: { embeddings: true } }, 'blockCoordinate.embeddings'],
    [{ adapter: 3 }, 'adapter'],
    [{ adapter: { rank: 3 } }, 'adapter.rank'],
    [{ adapter: { targetModules: ['q_proj', 3] } }, 'adapter.targetModules[1]'],
    [{ adapter: { targetModules: 3 } }, 'adapter.targetModules'],
    [{ adapter: { layersToTransform: -1 } }, 'adapter.layersToTransform'],
    [{ adapter: { modulesToSave: 'norm' } }, 'adapter.modulesToSave'],
    [{ adapter: { rankPattern: { q_proj: '4' } } }, 'adapter.rankPattern.q_proj'],
    [{ adapter: { init: 'pissa' } }, 'adapter.init'],
    [{ adapter: { bias: 'all' } }, 'adapter.bias'],
    [{ saveEvery: -1 }, 'saveEvery'],
    [{ sample: { temperatur: 1 } }, 'sample.temperatur'],
    [{ onNonFinite: 'ignore' }, 'onNonFinite'],
  ])('%j_is_refused_by_path', (options, path) => {
    expect(pathOf(options)).toBe(path);
  });
  it('values_of_the_right_kind_are_left_to_the_core', () => {
    const values = { batch_size: 0, learning_rate: -1, optimizer: { type: 'adamw', beta1: 2 } };
    expect(
      config({ batchSize: 0, learningRate: -1, optimizer: { type: 'adamw', beta1: 2 } }),
    ).toEqual(values);
    expect(pathOf({ seed: -1 })).toBe('seed');
    expect(
      pathOf({ lrScheduler: { type: 'wsd', decayStartStep: -1, decayType: 'rsqrt' } }),
    ).toBeUndefined();
  });
  it('driver_options_do_not_reach_the_core', () => {
    const { config: core, driver } = trainSettings({ saveEvery: 5, sample: { topK: 3 } });
    expect(core).toEqual({});
    expect(driver.saveEvery).toBe(5);
    expect(driver.sample).toEqual({ top_k: 3 });
  });
});

describe('the core and the page know the same options', () => {
  it('numbers_that_may_be_a_word_or_null', () => {
    const apollo = (options: object): unknown =>
      config({ optimizer: { type: 'apollo', ...options } });
    expect(apollo({ scale: 'auto', growthLimit: null })).toEqual({
      optimizer: { type: 'apollo', scale: 'auto', growth_limit: null },
    });
    expect(apollo({ scale: 2, growthLimit: 1.5 })).toEqual({
      optimizer: { type: 'apollo', scale: 2, growth_limit: 1.5 },
    });
    expect(() => apollo({ scale: 'rank' })).toThrow("a finite number or 'auto'");
    expect(() => apollo({ growthLimit: Infinity })).toThrow('a finite number or null');
  });
  const lists = [
    ...Object.entries(OPTIMIZERS).map(([type, kinds]) => ['optimizer', type, kinds] as const),
    ...Object.entries(SCHEDULES).map(([type, kinds]) => ['lrScheduler', type, kinds] as const),
  ];
  it.each(lists)('%s %s', (option, type, kinds) => {
    expect(Object.keys(kinds).length).toBeGreaterThan(1);
    // A known key is refused for its value, an unknown one for its name.
    for (const [key, kind] of Object.entries(kinds)) {
      const wrong = kind === 'number or null' ? 'none' : null;
      expect(() => trainSettings({ [option]: { type, [key]: wrong } })).toThrow(
        wrong === null ? /found null\.$/ : /found "none"\.$/,
      );
    }
    expect(() => trainSettings({ [option]: { type, other: null } })).toThrow(/found "other"\.$/);
  });
  it('run and groups', () => {
    for (const key of Object.keys(RUN))
      expect(() => trainSettings({ [key]: null })).toThrow(/found null\.$/);
    for (const key of Object.keys(ADAPTER))
      expect(() => trainSettings({ adapter: { [key]: null } })).toThrow(/found null\.$/);
    for (const key of Object.keys(GROUP))
      expect(() =>
        trainSettings({ groups: [Object.assign({ pattern: '*' }, { [key]: null })] }),
      ).toThrow(/found null\.$/);
  });
});
