// The settings of a run as JSON schemas, from what `npm run generate` makes of the Rust code: the kinds of their values, and the tables of
// crate/SETTINGS.md with defaults and meanings.
import { transformSync } from 'esbuild';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './toolchain.mjs';

/** @typedef {import('./src/schema.js').JsonSchema} JsonSchema @typedef {import('./src/schema.js').Json} Json */
/** @typedef {import('./src/protocol/generated/kinds.js').Kind} Kind @typedef {import('./src/protocol/generated/kinds.js').Kinds} Kinds */
/** A row of a table: the default as it is written there, and the meaning. @typedef {{ value: string, meaning: string }} Row */
/** @typedef {Record<string, Record<string, Row>>} Tables */

const DIALECT = 'https://json-schema.org/draft/2020-12/schema';
const NUMBER = String.raw`[−-]?[\d.,]*\d(?:e-?\d+)?`;
/** Words of a meaning that limit a number, with the keywords for the numbers in them. @type {[RegExp, ...(keyof JsonSchema)[]][]} */
const LIMITS = [
  [new RegExp(`from (${NUMBER}) to 2\\^53 − 1`), 'minimum'],
  [new RegExp(`from (${NUMBER}) to (${NUMBER})`), 'minimum', 'maximum'],
  [new RegExp(`above (${NUMBER}) and at most (${NUMBER})`), 'exclusiveMinimum', 'maximum'],
  [new RegExp(`(${NUMBER}) ≤ \\S+ < (${NUMBER})`), 'minimum', 'exclusiveMaximum'],
  [new RegExp(`(?:, |; )≥ (${NUMBER})`), 'minimum'],
  [new RegExp(`(?:, |factor )> (${NUMBER})`), 'exclusiveMinimum'],
  [new RegExp(`, < (${NUMBER})`), 'exclusiveMaximum'],
];

/** @type {Record<string, JsonSchema>} */
const OF_KINDS = {
  count: { type: 'integer', minimum: 0 },
  integer: { type: 'integer' },
  number: { type: 'number' },
  'number or auto': { anyOf: [{ type: 'number' }, { const: 'auto' }] },
  'number or null': { anyOf: [{ type: 'number' }, { type: 'null' }] },
  boolean: { type: 'boolean' },
  string: { type: 'string' },
  names: { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }] },
  counts: {
    anyOf: [
      { type: 'integer', minimum: 0 },
      { type: 'array', items: { type: 'integer', minimum: 0 } },
    ],
  },
  list: { type: 'array', items: { type: 'string' } },
  numbers: { type: 'array', items: { type: 'number' } },
  table: { type: 'object', additionalProperties: { type: 'number' } },
};

/** @param {string} key */
const snake = (key) => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
/** @param {string} key */
const camel = (key) => key.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
/** The one setting whose names differ by more. @param {string} key */
const optionOf = (key) => (key === 'schedule' ? 'lrScheduler' : camel(key));

/** The kinds of all settings, by the names of their tables. @returns {Promise<typeof import('./src/protocol/generated/kinds.js')>} */
async function kindsOfSettings() {
  const source = readFileSync(join(root, 'web/src/protocol/generated/kinds.ts'), 'utf8');
  const { code } = transformSync(source, { loader: 'ts' });
  return import(`data:text/javascript,${encodeURIComponent(code)}`);
}

/** The tables of a document, by their headings and the keys in their rows. @param {string} text @returns {Tables} */
function tablesOf(text) {
  /** @type {Tables} */
  const tables = {};
  for (const section of text.split(/^##+ /m).slice(1)) {
    const [heading = ''] = section.split('\n');
    const rows = [...section.matchAll(/^\| `(\w+)` \| (.*?) \| (.*) \|$/gm)].map(
      ([, key = '', value = '', meaning = '']) => [key, { value, meaning }],
    );
    // Two schedules share a table.
    for (const name of heading.split(', ')) tables[name] = Object.fromEntries(rows);
  }
  return tables;
}

/** The limits that a meaning states for a number. @param {string} meaning @returns {JsonSchema} */
function limits(meaning) {
  for (const [words, ...keywords] of LIMITS) {
    const found = words.exec(meaning);
    if (!found) continue;
    const numbers = found
      .slice(1)
      .map((text) => Number(text.replaceAll(',', '').replace('−', '-')));
    return Object.fromEntries(keywords.map((keyword, index) => [keyword, numbers[index]]));
  }
  return {};
}

/** Adds limits to the numbers in a schema. @param {JsonSchema} schema @param {JsonSchema} added @returns {JsonSchema} */
function limited(schema, added) {
  const { type, items, additionalProperties, anyOf } = schema;
  if (type === 'number' || type === 'integer') return { ...schema, ...added };
  if (items) return { ...schema, items: limited(items, added) };
  if (typeof additionalProperties === 'object')
    return { ...schema, additionalProperties: limited(additionalProperties, added) };
  return anyOf ? { ...schema, anyOf: anyOf.map((each) => limited(each, added)) } : schema;
}

/** Names of settings in a text, by the names of options where these are asked for. @param {string} text @param {(key: string) => string} nameOf */
const renamed = (text, nameOf) =>
  text.replace(/`([a-z_]+)`/g, (_, key) => `\`${nameOf(key)}\``).replace(/ \(`.*`\)$/, '');

/** The default in a row: JSON, the type of a rule, or none where an absent setting has a meaning of its own. @param {Row} row @returns {{ default?: Json }} */
function defaultIn({ value, meaning }) {
  const [, text] = /^`(.*)`$/.exec(value) ?? [];
  if (text === undefined || meaning.includes('if absent')) return {};
  const isType = /^[a-z]+$/.test(text) && !['true', 'false', 'null'].includes(text);
  return { default: isType ? { type: text } : JSON.parse(text) };
}

/** A schema of some settings, in snake_case or as options. @param {Tables} tables @param {(key: string) => string} nameOf @param {Awaited<ReturnType<typeof kindsOfSettings>>} kinds */
function schemaOf(tables, nameOf, kinds) {
  /** @param {string} table @param {string} key */
  const described = (table, key) => {
    const row = tables[table]?.[key];
    if (row === undefined) throw new Error(`crate/SETTINGS.md has no ${key} in ${table}`);
    return { description: renamed(row.meaning, nameOf), ...defaultIn(row) };
  };
  /** The values of the plain settings in a table. @param {string} table @param {Kinds} keys */
  const values = (table, keys) =>
    Object.fromEntries(
      Object.entries(keys).map(([key, kind]) => {
        const name = snake(key);
        const schema = typeof kind === 'string' ? OF_KINDS[kind] : { enum: kind };
        if (schema === undefined) throw new Error(`${key}: ${kind} is no kind of a schema`);
        const bounded = limited(schema, limits(tables[table]?.[name]?.meaning ?? ''));
        return [nameOf(name), { ...bounded, ...described(table, name) }];
      }),
    );
  /** @param {Record<string, JsonSchema>} properties @param {string[]} required @returns {JsonSchema} */
  const object = (properties, required = []) => ({
    type: 'object',
    properties,
    required,
    additionalProperties: false,
  });
  /** The rules of a table by their types. @param {Record<string, Kinds>} all */
  const rules = (all) => ({
    anyOf: Object.entries(all).map(([type, keys]) =>
      object({ type: { const: type }, ...values(type, keys) }, ['type']),
    ),
  });
  /** The parts of rules that a group lays over those of the run, without defaults. @param {JsonSchema} all @returns {JsonSchema} */
  const parts = ({ anyOf = [] }) => ({
    anyOf: anyOf.map(({ properties = {} }) =>
      object(
        Object.fromEntries(
          Object.entries(properties).map(([key, { default: _, ...schema }]) => [key, schema]),
        ),
      ),
    ),
  });
  /** @param {JsonSchema} schema @returns {JsonSchema} */
  const orNull = (schema) => ({ anyOf: [{ type: 'null' }, schema] });
  const group = object(
    {
      ...values('Groups', kinds.GROUP),
      optimizer: { ...parts(rules(kinds.OPTIMIZERS)), ...described('Groups', 'optimizer') },
    },
    ['pattern'],
  );
  /** @type {Record<string, JsonSchema>} */
  const structured = {
    optimizer: rules(kinds.OPTIMIZERS),
    schedule: rules(kinds.SCHEDULES),
    groups: { anyOf: [{ const: 'no_decay' }, { type: 'array', items: group }] },
    adapter: orNull(object(values('Adapter', kinds.ADAPTER))),
    block_coordinate: orNull(object(values('Block-coordinate AdamW', kinds.BLOCK_COORDINATE))),
    columns: orNull(
      object(
        Object.fromEntries(
          Object.keys(kinds.COLUMNS).map((key) => [nameOf(key), { type: 'string' }]),
        ),
      ),
    ),
  };
  const run = values('Run', kinds.RUN);
  for (const [key, schema] of Object.entries(structured))
    run[nameOf(key)] = { ...schema, ...described('Run', key) };
  const missing = Object.keys(tables['Run'] ?? {}).filter((key) => !(nameOf(key) in run));
  if (missing.length > 0) throw new Error(`settings without a schema: ${missing}`);
  return { $schema: DIALECT, title: 'Settings of a run of tabtune', ...object(run) };
}

/** Returns the schemas of a settings file and of options. @returns {Promise<Record<'settings' | 'options', JsonSchema>>} */
export async function settingsSchemas() {
  const kinds = await kindsOfSettings();
  const tables = tablesOf(readFileSync(join(root, 'crate/SETTINGS.md'), 'utf8'));
  return {
    settings: schemaOf(tables, (key) => key, kinds),
    options: schemaOf(tables, optionOf, kinds),
  };
}
