// The settings of the core in TypeScript: their interfaces, and the kinds of their values, which the page checks.
import { quoted } from './generated-sentences.mjs';

/**
 * @typedef {any} Schema JSON that `tabtune-dev` prints, or a part of it
 * @typedef {string | (string | boolean)[]} Kind of a value, or its allowed words
 * @typedef {{ key: string, kind: Kind | undefined, required: boolean, doc: string, value: any }} Key of an object with settings; `value` is the default
 * @typedef {{ of: string, tag?: string, name: string, doc: string, keys: Key[] }} Settings with their name in TypeScript and the tag of their `type`
 */

export const HEADER = '// Made by npm run generate; not for editing.\n';
const SETTINGS_HEAD = `${HEADER}/** Settings by their names in TypeScript. */\n`;

/** Returns the name in TypeScript of one in Rust. */
export const camel = (/** @type {string} */ key) =>
  key.replace(/_([a-z0-9])/g, (_, c) => c.toUpperCase());
/** Returns Rust's documentation for TypeScript: names in camelCase except for quoted ones, which are data; lines joined, no links. */
export const camelDoc = (/** @type {string} */ text) =>
  text
    .replaceAll('\n', ' ')
    .replace(/\[(`[^`]+`)\]/g, '$1')
    .replace(/(?<!")\b[a-z0-9]+(_[a-z0-9]+)+\b/g, camel);
export const word = (/** @type {unknown} */ value) =>
  typeof value === 'string' ? quoted(value) : String(value);
const small = (/** @type {any} */ value) =>
  typeof value === 'number' && value !== 0 && Math.abs(value) < 1e-3;
export const shown = (/** @type {any} */ value) =>
  typeof value === 'string'
    ? quoted(value)
    : small(value)
      ? value.toExponential()
      : JSON.stringify(value);

/** Returns a property merged with the target of its `$ref`, and with a flag if it may be null. @param {Schema} property @param {Schema} defs */
export function resolved(property, defs) {
  const [inner, none] = property.anyOf ?? [property];
  const target = inner.$ref ? defs[inner.$ref.slice('#/$defs/'.length)] : inner;
  const types = [target.type].flat();
  const { oneOf, anyOf, items } = target;
  return {
    ...target,
    ...property,
    type: types[0],
    nullable: none !== undefined || types.includes('null'),
    oneOf,
    anyOf,
    items,
  };
}
/** @param {Schema} property @returns {(string | boolean)[]} */
export const wordsOf = ({ oneOf }) =>
  oneOf
    .flatMap((/** @type {Schema} */ variant) => [variant.const, variant.alias])
    .filter((/** @type {unknown} */ each) => each !== undefined);

/** Kinds that are neither plain values nor lists of allowed words, with their TypeScript type. @type {Record<string, string>} */
const LONG_KINDS = {
  count: 'number',
  integer: 'number',
  counts: 'number | number[]',
  names: 'string | string[]',
  ...{ list: 'string[]', numbers: 'number[]' },
  table: 'Record<string, number>',
  'number or auto': "number | 'auto'",
  'number or null': 'number | null',
};
const typeOf = (/** @type {Kind} */ kind) =>
  Array.isArray(kind) ? kind.map(word).join(' | ') : (LONG_KINDS[kind] ?? kind);

/** Returns the kind of a value that TypeScript checks; `undefined` for values with keys of their own. @param {Schema} property @returns {Kind | undefined} */
function kindOf(property) {
  const { type, items, oneOf, anyOf } = property;
  if (type === 'array')
    return { string: 'list', number: 'numbers' }[/** @type {string} */ (items.type)];
  if (property.properties || oneOf?.[0].properties) return undefined;
  if (property.enum) return property.enum;
  if (oneOf) return oneOf[0].type === 'number' ? `number or ${oneOf[1].const}` : wordsOf(property);
  if (anyOf) return anyOf[0].type === 'string' ? 'names' : 'counts';
  if (property.additionalProperties) return 'table';
  if (type === 'integer') return property.minimum === 0 ? 'count' : 'integer';
  // A value whose default is null is left out instead.
  return type === 'number' && property.nullable && property.default !== null
    ? 'number or null'
    : type;
}

/** Returns the keys of an object, with kind, documentation and default; a value with keys of its own has no kind. @param {Schema} object @param {Schema} defs */
function keysOf(object, defs) {
  const properties = Object.entries(object.properties).filter(([key]) => key !== 'type');
  return properties.map(([key, given]) => {
    const property = resolved(given, defs);
    const required = object.required?.includes(key) ?? false;
    return {
      key,
      kind: kindOf(property),
      required,
      doc: property.description,
      value: property.default,
    };
  });
}

/** Returns the keys that TypeScript checks itself. @param {Settings} settings */
const plain = ({ keys }) =>
  keys.flatMap(({ kind, ...key }) => (kind === undefined ? [] : [{ ...key, kind }]));

/** Returns the objects with settings. @param {Schema} schema @returns {Settings[]} */
export function objects({ settings: { run: train, sample, score } }) {
  const defs = train.$defs;
  const one = (
    /** @type {string} */ of,
    /** @type {string} */ name,
    /** @type {Schema} */ object,
    doc = object.description,
  ) => ({ of, name, doc, keys: keysOf(object, object.$defs ?? defs) });
  const variants = (
    /** @type {string} */ of,
    /** @type {string} */ ending,
    /** @type {Schema} */ { oneOf },
  ) =>
    oneOf.map((/** @type {Schema} */ variant) => {
      const tag = variant.properties.type.const;
      return { ...one(of, tag[0].toUpperCase() + tag.slice(1) + ending, variant), tag };
    });
  return [
    one('run', 'RunSettings', train, 'What a step computes, without what has keys of its own.'),
    one('adapter', 'AdapterSettings', defs.AdapterConfig),
    one('blockCoordinate', 'BlockCoordinateSettings', defs.BlockCoordinateConfig),
    one('columns', 'ColumnSettings', defs.Columns),
    one('group', 'GroupSettings', defs.GroupConfig),
    one('sample', 'SampleOptions', sample),
    one('score', 'ScoreSettings', score),
    ...variants('optimizer', 'Options', defs.OptimizerConfig),
    ...variants('schedule', 'Schedule', defs.ScheduleConfig),
  ];
}

/** @param {Settings} settings */
function interfaceOf(settings) {
  const fields = plain(settings).map(({ key, kind, required, doc, value }) => {
    const comment =
      value === undefined || value === null
        ? `/** ${camelDoc(doc)} */`
        : `/**\n   * ${camelDoc(doc)}\n   * @default ${shown(value)}\n   */`;
    return `  ${comment}\n  ${camel(key)}${required ? `: ${typeOf(kind)}` : `?: ${typeOf(kind)} | undefined`};\n`;
  });
  const tag = settings.tag ? `  type: ${quoted(settings.tag)};\n` : '';
  return `/** ${camelDoc(settings.doc)} */\nexport interface ${settings.name} {\n${tag}${fields.join('')}}\n`;
}

/** Returns settings of one kind. @param {Settings[]} all @param {string} of */
const those = (all, of) => all.filter((each) => each.of === of);

/** Returns the settings without a `type`. @param {Settings[]} all */
export function settingsTs(all) {
  const plainOnes = all.filter(({ tag }) => !tag);
  return SETTINGS_HEAD + plainOnes.map(interfaceOf).join('\n');
}

/** Returns the update rules and schedules, which are chosen by a `type`. @param {Settings[]} all */
export function rulesTs(all) {
  const rules = [...those(all, 'optimizer'), ...those(all, 'schedule')].map(interfaceOf);
  const names = (/** @type {string} */ of) => those(all, of).map(({ name }) => name);
  const optimizers = `export type OptimizerOptions = ${names('optimizer').join(' | ')};\n`;
  const schedules = `export type ScheduleOptions = ${names('schedule').join(' | ')};\n`;
  return SETTINGS_HEAD + [...rules, optimizers, schedules].join('\n');
}

/** @param {Settings[]} all */
export function kindsTs(all) {
  const kind = (/** @type {Kind} */ given) =>
    Array.isArray(given) ? `[${given.map(word).join(', ')}]` : quoted(given);
  const table = (/** @type {Settings} */ each) =>
    `{ ${plain(each)
      .map((key) => `${camel(key.key)}: ${kind(key.kind)}`)
      .join(', ')} }`;
  const constant = (/** @type {string} */ of) => of.replace(/[A-Z]/g, '_$&').toUpperCase();
  const ones = all
    .filter(({ tag }) => !tag)
    .map((each) => `export const ${constant(each.of)}: Kinds = ${table(each)};\n`);
  const byTag = (/** @type {string} */ of) => {
    const rows = those(all, of).map((each) => `  ${each.tag}: ${table(each)},\n`);
    return `export const ${constant(of)}S: Record<string, Kinds> = {\n${rows.join('')}};\n`;
  };
  return `${HEADER}/**
 * Keys of settings and the kinds of their values: a \`count\` is an integer of at least 0, \`counts\` and \`names\` are one value or a list, a \`list\` has texts, a \`table\`
 * numbers by names; a list is its words.
 */
export type Kind = 'count' | 'counts' | 'integer' | 'number' | 'number or auto' | 'number or null' | 'boolean' | 'string' | 'names' | 'list' | 'numbers' | 'table' | readonly (string | boolean)[];
export type Kinds = Readonly<Record<string, Kind>>;

${ones.join('')}${byTag('optimizer')}${byTag('schedule')}`;
}
