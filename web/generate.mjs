// npm run generate: writes the parts of TypeScript and the documents that repeat the Rust code, from the schema that `tabtune-dev` prints, and the
// declaration of the core, from the one that wasm-bindgen writes.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  codesTable,
  codesTs,
  exportsTs,
  inTable,
  pageCodesTs,
  row,
  sidesOfCodes,
  workerCodesTs,
} from './generated-sentences.mjs';
import {
  HEADER,
  camel,
  camelDoc,
  kindsTs,
  objects,
  resolved,
  rulesTs,
  settingsTs,
  shown,
  word,
  wordsOf,
} from './generated-settings.mjs';
import { FOLDERS } from './core-kind.mjs';
import { buildWasm } from './build-wasm.mjs';
import { environment, programIn, read, root, run } from './toolchain.mjs';

/** @typedef {import('./generated-settings.mjs').Schema} Schema @typedef {import('./generated-settings.mjs').Key} Key */

const GENERATED = 'web/src/protocol/generated';
export const SCHEMA = `${GENERATED}/schema.json`;

/** Returns the parser of a reported property. @param {Schema} given @param {Schema} defs @param {string} indent @returns {string} */
function parserOf(given, defs, indent) {
  const property = resolved(given, defs);
  if (property.oneOf) return `oneOf(${wordsOf(property).map(word).join(', ')})`;
  if (property.type === 'array') return `listOf(${parserOf(property.items, defs, indent)})`;
  if (property.type === 'object') return `record(${fieldsOf(property, defs, `${indent}  `)})`;
  return (
    { integer: 'count', number: 'number', boolean: 'flag', string: 'text' }[
      /** @type {string} */ (property.type)
    ] ?? ''
  );
}

/** @param {Schema} object @param {Schema} defs @returns {string} */
function fieldsOf({ properties, required }, defs, indent = '') {
  const fields = Object.entries(properties).map(([key, given]) => {
    const parser = parserOf(given, defs, indent);
    const doc = given.description ? `${indent}  /** ${camelDoc(given.description)} */\n` : '';
    return `${doc}${indent}  ${camel(key)}: ${required.includes(key) ? parser : `optional(${parser})`},\n`;
  });
  return `{\n${fields.join('')}${indent}}`;
}

/** @param {Schema} schema */
function reportsTs({ reports }) {
  const parsers = Object.entries(reports).map(
    ([name, report]) =>
      `export const ${name}Fields = ${fieldsOf(report, report.$defs)};\n/** ${camelDoc(report.description)} */\nexport const ${name} = record(${name}Fields);\n`,
  );
  const all = ['count', 'flag', 'listOf', 'number', 'oneOf', 'optional', 'record', 'text'];
  const used = all.filter((name) => new RegExp(`\\b${name}\\(|: ${name},`).test(parsers.join('')));
  return `${HEADER}/** Reports of the core, under the names that it gives them for TypeScript. */\nimport { ${used.join(', ')} } from '../parse.js';\n\n${parsers.join('\n')}`;
}

/** Returns rows of settings under Rust's names, or TypeScript's. @param {Key[]} keys @param {boolean} typescript */
function tableOf(keys, typescript) {
  const cells = keys.map(({ key, kind, required, doc, value }) => {
    const allowed = Array.isArray(kind)
      ? ` (${kind.map((each) => `\`${JSON.stringify(each)}\``).join(', ')})`
      : '';
    const standard = value?.type ?? (typescript ? shown(value) : JSON.stringify(value));
    return row([
      `\`${typescript ? camel(key).replace(/^schedule$/, 'lrScheduler') : key}\``,
      required ? 'required' : value === undefined || value === null ? '' : `\`${standard}\``,
      inTable(typescript ? camelDoc(doc) : doc) + allowed.replaceAll('"', typescript ? "'" : '"'),
    ]);
  });
  return [row(['key', 'default', 'meaning']), '|---|---|---|', ...cells];
}

/** Returns a document whose section of this heading has a new table; the rest of it is written by hand. @param {string} document @param {string} heading @param {string[]} table */
function withTable(document, heading, table) {
  const lines = document.split('\n');
  const start = lines.indexOf(heading);
  const begin = lines.findIndex((line, at) => at > start && line.startsWith('|'));
  const next = lines.findIndex((line, at) => at > start && line.startsWith('#'));
  if (start === -1 || begin === -1 || (next !== -1 && next < begin))
    throw new Error(`expected the heading ${heading} with a table`);
  const end = lines.findIndex((line, at) => at > begin && !line.startsWith('|'));
  return [...lines.slice(0, begin), ...table, ...lines.slice(end)].join('\n');
}

/** Headings of the tables in crate/SETTINGS.md and in web/README.md, by the settings; other headings of the first are tags. @type {Record<string, string>} */
const IN_SETTINGS = {
  ...{
    run: '## Run',
    adapter: '## Adapter',
    blockCoordinate: '## Block-coordinate AdamW',
    group: '## Groups',
  },
  ...{ cosine: '### cosine, linear', linear: '' },
};
/** @type {Record<string, string>} */
const IN_README = { sample: '### Samples' };

/** Returns the text of every generated file, from the schema and the current documents. @param {Schema} schema @returns {Record<string, string>} */
export function generated(
  schema,
  document = (/** @type {string} */ path) => readFileSync(join(root, path), 'utf8'),
) {
  const sides = sidesOfCodes();
  const all = objects(schema);
  let [settingsMd, readmeMd] = [document('crate/SETTINGS.md'), document('web/README.md')];
  for (const { of, tag, keys } of all) {
    const heading = IN_SETTINGS[tag ?? of] ?? (tag && `### ${tag}`);
    if (heading) settingsMd = withTable(settingsMd, heading, tableOf(keys, false));
    if (IN_README[of]) readmeMd = withTable(readmeMd, IN_README[of], tableOf(keys, true));
  }
  const names = all.flatMap(({ keys }) => keys.map(({ key }) => key));
  return {
    [`${GENERATED}/codes.ts`]: HEADER + codesTs(schema, sides),
    [`${GENERATED}/page-codes.ts`]: HEADER + pageCodesTs(schema, sides),
    [`${GENERATED}/worker-codes.ts`]: HEADER + workerCodesTs(schema, sides, names),
    'web/ERRORS.md': withTable(
      document('web/ERRORS.md'),
      '# Errors and warnings',
      codesTable(schema),
    ),
    [`${GENERATED}/exports.ts`]: HEADER + exportsTs(schema),
    [`${GENERATED}/settings.ts`]: settingsTs(all),
    [`${GENERATED}/rules.ts`]: rulesTs(all),
    [`${GENERATED}/kinds.ts`]: kindsTs(all),
    [`${GENERATED}/reports.ts`]: reportsTs(schema),
    'crate/SETTINGS.md': settingsMd,
    'web/README.md': readmeMd,
  };
}

export const DECLARATION = 'web/src/worker/generated/core.d.ts';

/**
 * Returns the declaration of the core for the worker, from that of the build in a folder: without the exports of the module itself, and with the start
 * function as `build-wasm.mjs` changes it.
 * @param {string} folder
 */
export function declaration(folder) {
  const text = readFileSync(join(root, folder, 'tabtune.d.ts'), 'utf8');
  const calls = text.slice(0, text.indexOf('export type InitInput'));
  return `${HEADER}/* eslint-disable */
/** The interface of the Rust core (\`web/core\`) for the worker. Reports are parsed in \`wasm.ts\`, so they are \`unknown\` here. */
${calls.replace(/^\/\* .*\n/gm, '').replace(/^ +\[Symbol\.dispose\].*\n/gm, '')}/** Loads the core; \`fetched\` requests a file by its address, if the core is not given as a module or as bytes. */
export default function init(options: {
    module_or_path: WebAssembly.Module | BufferSource | URL | string | undefined;
    fetched: (address: URL | string) => Promise<Response>;
}): Promise<unknown>;
`.replace(/\n{3,}/g, '\n\n');
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await run('cargo', ['build', '--workspace', '--bins', '--locked']);
  const printed = await read(programIn(environment.CARGO_TARGET_DIR, 'tabtune-dev'), ['schema']);
  if (printed === undefined) throw new Error('tabtune-dev printed no schema');
  writeFileSync(join(root, SCHEMA), `${printed}\n`);
  for (const [path, text] of Object.entries(generated(JSON.parse(printed))))
    writeFileSync(join(root, path), text);
  await buildWasm('quick');
  writeFileSync(join(root, DECLARATION), declaration(FOLDERS.quick.core));
}
