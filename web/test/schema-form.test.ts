/** Tests the form that is made of the settings' schema: its fields, the values of what is typed, and the options of a run that have them. */
import { beforeEach, describe, expect, it, vi } from 'vitest';

import { settingsSchemas } from '../settings-schema.mjs';
import { faultAt, noteFaults, setAdvanced, withAdvanced } from '../demo/advanced.js';
import { groupsOf, labelOf, valueOf } from '../demo/schema-form.js';
import type { SettingField } from '../demo/schema-form.js';
import { TabtuneError } from '../src/index.js';
import type { TrainOptions } from '../src/index.js';

const { options: schema } = await settingsSchemas();
const BASE: TrainOptions = {
  optimizer: { type: 'adamw' },
  lrScheduler: { type: 'wsd', decaySteps: 80 },
};

const fieldsOf = (base: TrainOptions): Map<string, SettingField> =>
  new Map(groupsOf(schema, base).flatMap(({ fields }) => fields.map((each) => [each.path, each])));
const read = (path: string, text: string, base = BASE): unknown => {
  const field = fieldsOf(base).get(path);
  if (!field) throw new Error(`no field ${path}`);
  return valueOf(text, field.schema);
};

beforeEach(() => vi.stubGlobal('localStorage', { setItem: vi.fn(), getItem: () => null }));

describe('fields', () => {
  it('has every setting of a run, here or elsewhere on the page', () => {
    const adapter = fieldsOf({ ...BASE, adapter: {}, blockCoordinate: {} });
    const elsewhere = [
      'steps',
      'epochs',
      'learningRate',
      'batchSize',
      'seqLen',
      'seed',
      'precision',
    ];
    for (const name of Object.keys(schema.properties ?? {}))
      expect(
        elsewhere.includes(name) || [...adapter.keys()].some((path) => path.split('.')[0] === name),
        name,
      ).toBe(true);
  });

  it('shows the parameters of the chosen rule and schedule alone', () => {
    const paths = [...fieldsOf(BASE).keys()];
    expect(paths).toContain('optimizer.adamw.beta1');
    expect(paths).toContain('lrScheduler.wsd.decayType');
    expect(paths.filter((path) => /sgd|cosine|^adapter|^blockCoordinate/.test(path))).toEqual([]);
  });

  it('shows the value that holds, its limits and its meaning', () => {
    const fields = fieldsOf(BASE);
    expect(fields.get('optimizer.adamw.beta1')).toMatchObject({
      label: 'Beta1',
      placeholder: '0.9 (from 0 below 1)',
      control: 'number',
    });
    expect(fields.get('lrScheduler.wsd.decaySteps')?.placeholder).toMatch(/^80/);
    expect(fields.get('packing')).toMatchObject({ control: 'choice', words: ['true', 'false'] });
    expect(fields.get('maxGradNorm')?.about).toMatch(/^Maximum global 2-norm/);
    expect(labelOf('gradientAccumulationSteps')).toBe('Gradient accumulation steps');
  });
});

describe('values', () => {
  it.each([
    ['maxGradNorm', ' ', undefined],
    ['maxGradNorm', '0.5', 0.5],
    ['packing', 'false', false],
    ['dataOrder', 'sequential', 'sequential'],
    ['groups', 'no_decay', 'no_decay'],
    ['groups', '[{"pattern": "*"}]', [{ pattern: '*' }]],
    ['groups', '[{', '[{'],
    ['dataWeights', '1, 2.5', [1, 2.5]],
    ['dataWeights', '2', [2]],
    ['chatDate', '2026-01-31', '2026-01-31'],
    ['columns.prompt', 'question', 'question'],
  ])('%s: %s', (path, text, value) => {
    expect(read(path, text)).toEqual(value);
  });

  it.each([
    ['adapter.targetModules', 'all-linear', 'all-linear'],
    ['adapter.targetModules', 'q_proj, v_proj', ['q_proj', 'v_proj']],
    ['adapter.layersToTransform', '3', 3],
    ['adapter.rankPattern', '{"q_proj": 4}', { q_proj: 4 }],
    ['adapter.init', 'true', true],
  ])('%s: %s', (path, text, value) => {
    expect(read(path, text, { ...BASE, adapter: {} })).toEqual(value);
  });

  it('takes numbers, words and null where the rule does', () => {
    const apollo = { ...BASE, optimizer: { type: 'apollo' } } as const;
    expect(read('optimizer.apollo.scale', 'auto', apollo)).toBe('auto');
    expect(read('optimizer.apollo.growthLimit', 'null', apollo)).toBe(null);
    expect(read('optimizer.apollo.growthLimit', '1.1', apollo)).toBe(1.1);
  });
});

describe('options', () => {
  it('have the settings of the rule, schedule and adapter that they are for', () => {
    setAdvanced('maxGradNorm', 0.5);
    setAdvanced('optimizer.adamw.beta1', 0.8);
    setAdvanced('optimizer.sgd.momentum', 0.9);
    setAdvanced('adapter.dropout', 0.1);
    setAdvanced('columns.prompt', 'question');
    expect(withAdvanced(BASE)).toEqual({
      ...BASE,
      maxGradNorm: 0.5,
      optimizer: { type: 'adamw', beta1: 0.8 },
      columns: { prompt: 'question' },
    });
    expect(withAdvanced({ adapter: { r: 4 } }).adapter).toEqual({ r: 4, dropout: 0.1 });
    setAdvanced('maxGradNorm', undefined);
    expect(withAdvanced(BASE)).not.toHaveProperty('maxGradNorm');
  });

  it('are refused at their own field', () => {
    const fault = new TabtuneError('BAD_OPTION', 'no', { path: 'optimizer.beta1' });
    expect(noteFaults(fault)).toEqual(['optimizer.beta1']);
    expect(faultAt('optimizer.adamw.beta1')).toBe('no');
    expect(noteFaults(undefined)).toEqual([]);
    expect(faultAt('optimizer.adamw.beta1')).toBeUndefined();
  });
});
