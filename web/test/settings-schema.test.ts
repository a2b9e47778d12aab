import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

import { settingsSchemas } from '../settings-schema.mjs';
import { OPTIMIZERS, RUN, SCHEDULES } from '../src/protocol/generated/kinds.js';
import type { JsonSchema } from '../src/schema.js';

const recipes = new URL('../../recipes/', import.meta.url);
const { settings, options } = await settingsSchemas();

const typeOf = (value: unknown): string[] =>
  value === null
    ? ['null']
    : Array.isArray(value)
      ? ['array']
      : Number.isInteger(value)
        ? ['integer', 'number']
        : [typeof value];

/** Returns whether a value fits a schema, by the keywords that these schemas have. */
function fits(value: unknown, schema: JsonSchema): boolean {
  const { type, enum: words, properties = {}, items, additionalProperties, required = [] } = schema;
  if (type !== undefined && !typeOf(value).some((name) => [type].flat().includes(name)))
    return false;
  if ('const' in schema && value !== schema.const) return false;
  if (words && !words.some((word) => word === value)) return false;
  if (schema.anyOf && !schema.anyOf.some((each) => fits(value, each))) return false;
  if (Array.isArray(value)) return value.every((each) => !items || fits(each, items));
  if (typeof value === 'number')
    return (
      value >= (schema.minimum ?? -Infinity) &&
      value <= (schema.maximum ?? Infinity) &&
      value > (schema.exclusiveMinimum ?? -Infinity) &&
      value < (schema.exclusiveMaximum ?? Infinity)
    );
  if (typeof value !== 'object' || value === null) return true;
  return (
    required.every((key) => key in value) &&
    Object.entries(value).every(([key, each]) => {
      const known = properties[key] ?? additionalProperties;
      return known === undefined || known === true || (known && fits(each, known));
    })
  );
}

describe('schemas of settings', () => {
  it.each(readdirSync(recipes))('take_the_recipe_%s', (name) => {
    expect(fits(JSON.parse(readFileSync(new URL(name, recipes), 'utf8')), settings)).toBe(true);
  });
  it.each([
    [{ steps: 0 }],
    [{ steps: 1.5 }],
    [{ batchSize: 1 }],
    [{ precision: 'f16' }],
    [{ learning_rate: 0 }],
    [{ validation_fraction: 1 }],
    [{ data_weights: [1, 2000] }],
    [{ optimizer: { beta1: 0.9 } }],
    [{ optimizer: { type: 'sgd', beta1: 0.9 } }],
    [{ optimizer: { type: 'apollo', growth_limit: 1 } }],
    [{ groups: [{ frozen: true }] }],
    [{ adapter: { r: 70_000 } }],
    [{ schedule: { type: 'cosine', total_steps: -1 } }],
  ])('refuse_%j', (value) => expect(fits(value, settings)).toBe(false));
  it.each([
    [{ adapter: null, columns: { prompt: 'question' } }],
    [{ groups: [{ pattern: '*', optimizer: { beta1: 0.5 } }] }],
    [{ optimizer: { type: 'apollo', growth_limit: null, scale: 'auto' } }],
    [{ adapter: { target_modules: 'all-linear', rank_pattern: { q_proj: 4 } } }],
  ])('take_%j', (value) => expect(fits(value, settings)).toBe(true));
  it('of_options_have_the_keys_of_options', () => {
    const { properties = {} } = options;
    expect(Object.keys(properties)).toEqual([
      ...Object.keys(RUN),
      'optimizer',
      'lrScheduler',
      'groups',
      'adapter',
      'blockCoordinate',
      'columns',
    ]);
    const keysOf = (key: string): string[][] =>
      properties[key]?.anyOf?.map((each) => Object.keys(each.properties ?? {}).slice(1)) ?? [];
    expect(keysOf('optimizer')).toEqual(Object.values(OPTIMIZERS).map((keys) => Object.keys(keys)));
    expect(keysOf('lrScheduler')).toEqual(
      Object.values(SCHEDULES).map((keys) => Object.keys(keys)),
    );
    expect(properties['gradientRelease']?.description).toContain('`gradientAccumulationSteps` 1');
  });
  it('describe_every_setting_and_state_defaults', () => {
    const { properties = {} } = settings;
    for (const [key, { description }] of Object.entries(properties))
      expect(description, key).toMatch(/\w{3}/);
    expect(properties['learning_rate']).toMatchObject({ default: 0.001, exclusiveMinimum: 0 });
    expect(properties['optimizer']?.default).toEqual({ type: 'adamw' });
  });
});
