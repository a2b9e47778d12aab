// npm run generate: writes the parts of TypeScript and the documents that repeat the Rust code, from the schema that `tabtune-dev` prints.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { withSection, withTable } from './document-tables.mjs';
import { exportsTs } from './generated-exports.mjs';
import { codesTs, errorsMd, inTable, pageCodesTs, row, sidesOfCodes, workerCodesTs } from './generated-sentences.mjs';
import { environment, read, root, run } from './toolchain.mjs';

const GENERATED = 'web/src/protocol/generated';
export const SCHEMA = `${GENERATED}/schema.json`;
const HEADER = '// Made by npm run generate; not for editing.\n';

const camel = (key) => key.replace(/_([a-z0-9])/g, (_, c) => c.toUpperCase());
/** Returns Rust's documentation for TypeScript: names in camelCase except for quoted ones, which are data; lines joined, no links. */
const camelDoc = (text) =>
  text
    .replaceAll('\n', ' ')
    .replace(/\[(`[^`]+`)\]/g, '$1')
    .replace(/(?<!")\b[a-z0-9]+(_[a-z0-9]+)+\b/g, camel);
const quoted = (word) => (typeof word === 'string' ? `'${word}'` : String(word));

/** Returns a property merged with the target of its `$ref`, and with a flag if it may be null. */
function resolved(property, defs) {
  const [inner, none] = property.anyOf ?? [property];
  const target = inner.$ref ? defs[inner.$ref.slice('#/$defs/'.length)] : inner;
  const types = [target.type].flat();
  return {
    ...target,
    ...property,
    type: types[0],
    nullable: none !== undefined || types.includes('null'),
    oneOf: target.oneOf,
    anyOf: target.anyOf,
    items: target.items,
  };
}
const words = ({ oneOf }) => oneOf.flatMap((variant) => [variant.const, variant.alias]).filter((word) => word !== undefined);

/** Kinds that are neither plain values nor lists of allowed words, with their TypeScript type. */
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

/** Returns the kind of a value that TypeScript checks; `undefined` for values with keys of their own. */
function kindOf(property) {
  if (property.type === 'array') return { string: 'list', number: 'numbers' }[property.items.type];
  if (property.properties || property.oneOf?.[0].properties) return undefined;
  if (property.enum) return property.enum;
  if (property.oneOf?.[0].type === 'number') return `number or ${property.oneOf[1].const}`;
  if (property.oneOf) return words(property);
  if (property.anyOf) return property.anyOf[0].type === 'string' ? 'names' : 'counts';
  if (property.additionalProperties) return 'table';
  if (property.type === 'integer') return property.minimum === 0 ? 'count' : 'integer';
  // A value whose default is null is left out instead.
  if (property.type === 'number' && property.nullable && property.default !== null) return 'number or null';
  return property.type;
}

/** Returns the default as shown in a document; for an object, its type. */
const standardOf = (value, typescript) => (value?.type ? value.type : typescript ? shown(value) : JSON.stringify(value));
const typeOf = (kind) => (Array.isArray(kind) ? kind.map(quoted).join(' | ') : (LONG_KINDS[kind] ?? kind));
const shown = (value) =>
  typeof value === 'string'
    ? quoted(value)
    : typeof value === 'number' && value !== 0 && Math.abs(value) < 1e-3
      ? value.toExponential()
      : JSON.stringify(value);

/** Returns the keys of an object, with kind, documentation and default; a value with keys of its own has no kind. */
function keysOf(object, defs) {
  return Object.entries(object.properties).flatMap(([key, given]) => {
    const property = resolved(given, defs);
    const kind = kindOf(property);
    if (key === 'type') return [];
    const required = object.required?.includes(key) ?? false;
    return [{ key, kind, required, doc: property.description, value: property.default }];
  });
}
const plain = (keys) => keys.filter(({ kind }) => kind !== undefined);
const unionName = { optimizer: 'Options', schedule: 'Schedule' };
const typeName = (of, variant) => variant[0].toUpperCase() + variant.slice(1) + unionName[of];

/** Returns the objects with settings: their TypeScript name, the tag of their `type`, their documentation and keys. */
function objects({ run: train, sample, score }) {
  const defs = train.$defs;
  const variants = (of, name) =>
    defs[name].oneOf.map((variant) => ({
      of,
      tag: variant.properties.type.const,
      name: typeName(of, variant.properties.type.const),
      doc: variant.description,
      keys: keysOf(variant, defs),
    }));
  return [
    { of: 'run', name: 'RunSettings', doc: 'What a step computes, without what has keys of its own.', keys: keysOf(train, defs) },
    { of: 'adapter', name: 'AdapterSettings', doc: defs.AdapterConfig.description, keys: keysOf(defs.AdapterConfig, defs) },
    {
      of: 'blockCoordinate',
      name: 'BlockCoordinateSettings',
      doc: defs.BlockCoordinateConfig.description,
      keys: keysOf(defs.BlockCoordinateConfig, defs),
    },
    { of: 'columns', name: 'ColumnSettings', doc: defs.Columns.description, keys: keysOf(defs.Columns, defs) },
    { of: 'group', name: 'GroupSettings', doc: defs.GroupConfig.description, keys: keysOf(defs.GroupConfig, defs) },
    { of: 'sample', name: 'SampleOptions', doc: sample.description, keys: keysOf(sample, sample.$defs) },
    { of: 'score', name: 'ScoreSettings', doc: score.description, keys: keysOf(score, score.$defs) },
    ...variants('optimizer', 'OptimizerConfig'),
    ...variants('schedule', 'ScheduleConfig'),
  ];
}

function interfaceOf({ name, tag, doc, keys }) {
  const fields = plain(keys).map(({ key, kind, required, doc: said, value }) => {
    const ending = value === undefined || value === null ? '' : ` ${shown(value)}`;
    return `  /** ${camelDoc(said)}${ending} */\n  ${camel(key)}${required ? `: ${typeOf(kind)}` : `?: ${typeOf(kind)} | undefined`};\n`;
  });
  return `/** ${camelDoc(doc)} */\nexport interface ${name} {\n${tag ? `  type: ${quoted(tag)};\n` : ''}${fields.join('')}}\n`;
}

const SETTINGS_HEAD = '/** Settings by their names in TypeScript. A default ends its line. */\n';

/** Returns the settings without a `type`. */
function settingsTs(schema) {
  const all = objects(schema.settings).filter(({ tag }) => tag === undefined);
  return `${HEADER}${SETTINGS_HEAD}${all.map(interfaceOf).join('\n')}`;
}

/** Returns the update rules and schedules, which are chosen by a `type`. */
function rulesTs(schema) {
  const all = objects(schema.settings).filter(({ tag }) => tag !== undefined);
  const union = (of) =>
    all
      .filter((object) => object.of === of)
      .map(({ name }) => name)
      .join(' | ');
  const unions = `export type OptimizerOptions = ${union('optimizer')};\n\nexport type ScheduleOptions = ${union('schedule')};\n`;
  return `${HEADER}${SETTINGS_HEAD}${[...all.map(interfaceOf), unions].join('\n')}`;
}

function kindsTs(schema) {
  const all = objects(schema.settings);
  const kind = (given) => (Array.isArray(given) ? `[${given.map(quoted).join(', ')}]` : quoted(given));
  const table = ({ keys }) =>
    `{ ${plain(keys)
      .map((each) => `${camel(each.key)}: ${kind(each.kind)}`)
      .join(', ')} }`;
  const one = (of, name) => `export const ${name}: Kinds = ${table(all.find((object) => object.of === of))};\n`;
  const byTag = (of, name) => {
    const rows = all.filter((object) => object.of === of).map((object) => `  ${object.tag}: ${table(object)},\n`);
    return `export const ${name}: Record<string, Kinds> = {\n${rows.join('')}};\n`;
  };
  return `${HEADER}/**
 * Keys of settings and the kinds of their values: a \`count\` is an integer of at least 0, \`counts\` and \`names\` are one value or a list, a \`list\` has texts, a \`table\`
 * numbers by names; a list is its words.
 */
export type Kind = 'count' | 'counts' | 'integer' | 'number' | 'number or auto' | 'number or null' | 'boolean' | 'string' | 'names' | 'list' | 'numbers' | 'table' | readonly (string | boolean)[];
export type Kinds = Readonly<Record<string, Kind>>;

${one('run', 'RUN')}${one('adapter', 'ADAPTER')}${one('blockCoordinate', 'BLOCK_COORDINATE')}${one('columns', 'COLUMNS')}${one('group', 'GROUP')}${one('sample', 'SAMPLE')}${one('score', 'SCORE')}${byTag('optimizer', 'OPTIMIZERS')}${byTag('schedule', 'SCHEDULES')}`;
}

/** Returns the parser of a reported property. */
function parserOf(given, defs, indent) {
  const property = resolved(given, defs);
  if (property.oneOf) return `oneOf(${words(property).map(quoted).join(', ')})`;
  if (property.type === 'array') return `listOf(${parserOf(property.items, defs, indent)})`;
  if (property.type === 'object') return `record(${fieldsOf(property, defs, `${indent}  `)})`;
  return { integer: 'count', number: 'number', boolean: 'flag', string: 'text' }[property.type];
}

function fieldsOf({ properties, required }, defs, indent = '') {
  const field = ([key, given]) => {
    const parser = parserOf(given, defs, indent);
    const doc = given.description ? `${indent}  /** ${camelDoc(given.description)} */\n` : '';
    return `${doc}${indent}  ${camel(key)}: ${required.includes(key) ? parser : `optional(${parser})`},\n`;
  };
  return `{\n${Object.entries(properties).map(field).join('')}${indent}}`;
}

function reportsTs({ reports }) {
  const parsers = Object.entries(reports).map(
    ([name, report]) =>
      `export const ${name}Fields = ${fieldsOf(report, report.$defs)};\n/** ${camelDoc(report.description)} */\nexport const ${name} = record(${name}Fields);\n`,
  );
  const used = ['count', 'flag', 'listOf', 'number', 'oneOf', 'optional', 'record', 'text'].filter((name) =>
    parsers.some((text) => new RegExp(`\\b${name}\\(|: ${name},`).test(text)),
  );
  return `${HEADER}/** Reports of the core, under the names that it gives them for TypeScript. */\nimport { ${used.join(', ')} } from '../parse.js';\n\n${parsers.join('\n')}`;
}

/** Returns rows of settings under Rust's names, or TypeScript's. */
function tableOf({ keys }, { typescript }) {
  const cells = ({ key, kind, required, doc, value }) => {
    const allowed = Array.isArray(kind) ? ` (${kind.map((word) => `\`${JSON.stringify(word)}\``).join(', ')})` : '';
    const text = typescript ? camelDoc(doc) : doc;
    const standard = required ? 'required' : value === undefined || value === null ? '' : `\`${standardOf(value, typescript)}\``;
    return row([
      `\`${typescript ? camel(key).replace(/^schedule$/, 'lrScheduler') : key}\``,
      standard,
      inTable(text) + allowed.replaceAll('"', typescript ? "'" : '"'),
    ]);
  };
  return [row(['key', 'default', 'meaning']), '|---|---|---|', ...keys.map(cells)].join('\n');
}

function settingsMd(document, { settings }) {
  const all = objects(settings);
  const one = (word) => all.find(({ of }) => of === word);
  const under = (heading, object) => (document = withTable(document, heading, tableOf(object, { typescript: false })));
  under('## Run', one('run'));
  under('## Adapter', one('adapter'));
  under('## Block-coordinate AdamW', one('blockCoordinate'));
  under('## Groups', one('group'));
  for (const object of all.filter(({ tag }) => tag && tag !== 'linear')) {
    const heading = `### ${object.tag === 'cosine' ? 'cosine, linear' : object.tag}`;
    if (!document.split('\n').includes(heading))
      document = withSection(document, object.of === 'optimizer' ? '## Optimizers' : '## Schedules', heading);
    under(heading, object);
  }
  return document;
}

function readmeMd(document, { settings }) {
  const sample = objects(settings).find(({ of }) => of === 'sample');
  return withTable(document, '### Samples', tableOf(sample, { typescript: true }));
}

/** Returns the names of all settings. */
const settingKeys = ({ settings }) => objects(settings).flatMap(({ keys }) => keys.map(({ key }) => key));

/** Returns the text of every generated file, from the schema and the current documents. @returns {Record<string, string>} */
export function generated(schema, document = (path) => readFileSync(join(root, path), 'utf8')) {
  const sides = sidesOfCodes();
  return {
    [`${GENERATED}/codes.ts`]: codesTs(schema, sides, HEADER),
    [`${GENERATED}/page-codes.ts`]: pageCodesTs(schema, sides, HEADER),
    [`${GENERATED}/worker-codes.ts`]: workerCodesTs(schema, sides, settingKeys(schema), HEADER),
    'web/ERRORS.md': errorsMd(schema),
    [`${GENERATED}/exports.ts`]: exportsTs(schema, HEADER),
    [`${GENERATED}/settings.ts`]: settingsTs(schema),
    [`${GENERATED}/rules.ts`]: rulesTs(schema),
    [`${GENERATED}/kinds.ts`]: kindsTs(schema),
    [`${GENERATED}/reports.ts`]: reportsTs(schema),
    'crate/SETTINGS.md': settingsMd(document('crate/SETTINGS.md'), schema),
    'web/README.md': readmeMd(document('web/README.md'), schema),
  };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await run('cargo', ['build', '--workspace', '--bins', '--locked']);
  const printed = await read(join(environment.CARGO_TARGET_DIR, 'debug', 'tabtune-dev'), ['schema']);
  if (printed === undefined) throw new Error('tabtune-dev printed no schema');
  writeFileSync(join(root, SCHEMA), `${printed}\n`);
  for (const [path, text] of Object.entries(generated(JSON.parse(printed)))) writeFileSync(join(root, path), text);
}
