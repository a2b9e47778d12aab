// The table of error codes in TypeScript and as a document, and the formats of exports.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './toolchain.mjs';

/**
 * @typedef {{ word: string, class: string, raiser: string, sentence: string, hint: string }} Code
 * @typedef {{ codes: Code[], classes: string[] }} Codes
 * @typedef {'both' | 'page' | 'worker'} Side
 * @typedef {(code: Code) => Side} Sides
 * @typedef {{ word: string, about: string, ending: string, adapter: boolean, options: string[] }} Format
 */

/** @param {string} text */
export const quoted = (text) => (text.includes("'") ? JSON.stringify(text) : `'${text}'`);
/** Returns a row of a table of a document. @param {string[]} cells */
export const row = (cells) => `| ${cells.join(' | ')} |`;
/** Returns text for a cell of a table. @param {string} text */
export const inTable = (text) =>
  text.replaceAll('\n', ' ').replaceAll('|', '\\|').replace(/\.$/, '');

/** Returns the row of a code: `first`, the sentence, and what to do where the table says it. @param {Code} code @param {string[]} first */
const rowOf = ({ word, sentence, hint }, ...first) =>
  `  ${quoted(word)}: [${[...first, sentence, ...(hint === '' ? [] : [hint])].map(quoted).join(', ')}],\n`;

/** Returns the TypeScript of a folder of the package. @param {string} folder */
const sourcesIn = (folder) =>
  readdirSync(join(root, 'web/src', folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.startsWith('generated'))
    .map((name) => readFileSync(join(root, 'web/src', folder, name), 'utf8'))
    .join('');

/**
 * Returns a function that says which of the package's scripts needs a code: the worker speaks for the core too, and the page also compares codes that it
 * does not raise.
 * @returns {Sides}
 */
export function sidesOfCodes() {
  const [page, worker, both] = [sourcesIn('page'), sourcesIn('worker'), sourcesIn('protocol')];
  return ({ word, raiser }) => {
    if (both.includes(quoted(word))) return 'both';
    const isRaised = new RegExp(`\\b(fault|finding)\\(\\s*'${word}'`).test(page);
    if (!isRaised) return 'worker';
    return raiser === 'both' || worker.includes(quoted(word)) ? 'both' : 'page';
  };
}

/** Returns the table of the codes that one script alone needs, or both of them; `sides` says which. @param {string} name @param {Codes} codes @param {Sides} sides @param {Side} of */
function tableOf(name, { codes }, sides, of) {
  const rows = codes
    .filter((code) => code.raiser !== 'core' && sides(code) === of)
    .map((code) => rowOf(code, code.class));
  return `export const ${name} = {\n${rows.join('')}} as const satisfies Readonly<Record<string, CodeRow>>;\n`;
}

/** Returns the module with the classes of failures, and with the codes that both scripts of the package raise. @param {Codes} schema @param {Sides} sides */
export const codesTs = (
  schema,
  sides,
) => `/** Every class of failure. The names are never changed; \`detail.code\` has the exact reason. */
export const ERROR_CODES = [\n${schema.classes.map((each) => `  ${quoted(each)},\n`).join('')}] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

/** Sentence of a code with places for its values, and what to do; how it is filled is written in crate/src/error/sentence.rs. */
export type Row = readonly [sentence: string, hint?: string];
/** The same after the class of the code. */
export type CodeRow = readonly [of: ErrorCode | 'WARNING' | undefined, ...Row];

/** The dotted words that both the page and the worker raise. */
${tableOf('CODES', schema, sides, 'both')}`;

/** Returns the module with the codes that the page alone raises. @param {Codes} schema @param {Sides} sides */
export const pageCodesTs = (schema, sides) => `import type { CodeRow } from './codes.js';

/** The dotted words that the page alone raises. */
${tableOf('PAGE_CODES', schema, sides, 'page')}`;

/**
 * Returns the module with the codes of the worker: those that it alone raises, the core's, and the settings that the core's may name, which have another
 * case in TypeScript.
 * @param {Codes} schema @param {Sides} sides @param {string[]} keys
 */
export const workerCodesTs = (
  schema,
  sides,
  keys,
) => `import type { CodeRow, Row } from './codes.js';

/** The dotted words that the worker's TypeScript alone raises. */
${tableOf('WORKER_CODES', schema, sides, 'worker')}
/** Sentences of the codes that the core alone raises. */
export const CORE_SENTENCES: Readonly<Record<string, Row>> = {
${schema.codes
  .filter(({ raiser }) => raiser === 'core')
  .map((code) => rowOf(code))
  .join('')}};

/** Settings whose names have several words, as the core writes them. */
export const SETTINGS = '${[...new Set(keys)]
  .filter((key) => key.includes('_'))
  .sort()
  .join(' ')}';
`;

/** Returns the table of all codes for a document. @param {Codes} schema */
export function codesTable({ codes }) {
  const said = (/** @type {string} */ text) => {
    const ending = text === '' || text.endsWith('}') ? '' : '.';
    return inTable(text)
      .replaceAll('<', '&lt;')
      .replace(/(?<!\.)$/, ending);
  };
  const rows = codes.map(({ word, class: of, sentence, hint }) =>
    row([`\`${word}\``, of === 'WARNING' ? 'warning' : `\`${of}\``, said(sentence), said(hint)]),
  );
  return [row(['code', 'class', 'sentence', 'what to do']), '|---|---|---|---|', ...rows];
}

/** Returns the module with the formats of exports. @param {{ exports: Format[] }} schema */
export function exportsTs({ exports }) {
  const camel = (/** @type {string} */ key) =>
    key.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
  const rows = exports.map(({ word, about, ending, adapter, options }) => {
    const own = options.map((key) => quoted(camel(key))).join(', ');
    return `  ${/-/.test(word) ? quoted(word) : word}: { about: ${quoted(about)}, ending: ${quoted(ending)}, adapter: ${adapter}, options: [${own}] },\n`;
  });
  const all = [...new Set(exports.flatMap(({ options }) => options.map(camel)))].sort();
  return `/** Words of the formats of exports. */
export const EXPORT_WORDS = [${exports.map(({ word }) => quoted(word)).join(', ')}] as const;
export type ExportFormat = (typeof EXPORT_WORDS)[number];

/** Options of exports that only some formats have. */
export type OwnExportOption = ${all.map(quoted).join(' | ')};

/**
 * Formats of exports: a description, the ending of the one file (empty for a folder), whether it is the format of a trained adapter alone, and the
 * options that it has and not all formats have.
 */
export const EXPORT_FORMATS: Readonly<Record<ExportFormat, { about: string; ending: string; adapter: boolean; options: readonly OwnExportOption[] }>> = {
${rows.join('')}};
`;
}
