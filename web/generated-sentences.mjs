// The table of error codes in TypeScript and as a document.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { root } from './toolchain.mjs';

const quoted = (word) => `'${word}'`;
/** Returns a row of a table of a document. */
export const row = (cells) => `| ${cells.join(' | ')} |`;
/** Returns text for a cell of a table. */
export const inTable = (text) => text.replaceAll('\n', ' ').replaceAll('|', '\\|').replace(/\.$/, '');

/** Returns the row of a code: `first`, the sentence, and what to do where the table says it. */
const rowOf = ({ word, sentence, hint }, ...first) =>
  `  ${quotedText(word)}: [${[...first, sentence, ...(hint === '' ? [] : [hint])].map(quotedText).join(', ')}],\n`;
const quotedText = (text) => (text.includes("'") ? JSON.stringify(text) : `'${text}'`);

/** Returns the TypeScript of these folders of the package. */
const sourcesIn = (...folders) =>
  folders
    .flatMap((folder) =>
      readdirSync(join(root, 'web/src', folder), { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.ts') && !name.startsWith('generated'))
        .map((name) => readFileSync(join(root, 'web/src', folder, name), 'utf8')),
    )
    .join('');

/**
 * Returns a function that says which of the package's scripts needs a code: the worker speaks for the core too, and the page also compares codes that it
 * does not raise.
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

const SATISFIES = 'as const satisfies Readonly<Record<string, CodeRow>>';
/** Returns the rows of the codes that one script alone needs, or both of them; `sides` says which. */
const rowsOf = ({ codes }, sides, of) =>
  codes
    .filter((code) => code.raiser !== 'core' && sides(code) === of)
    .map((code) => rowOf(code, code.class))
    .join('');

/** Returns the module with the classes of failures, and with the codes that both scripts of the package raise. */
export function codesTs(schema, sides, header) {
  const list = schema.classes.map((each) => `  ${quoted(each)},\n`);
  return `${header}/** Every class of failure. The names are never changed; \`detail.code\` has the exact reason. */
export const ERROR_CODES = [\n${list.join('')}] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

/** Sentence of a code with places for its values, and what to do; how it is filled is written in crate/src/error/sentence.rs. */
export type Row = readonly [sentence: string, hint?: string];
/** The same after the class of the code. */
export type CodeRow = readonly [of: ErrorCode | 'WARNING' | undefined, ...Row];

/** The dotted words that both the page and the worker raise. */
export const CODES = {\n${rowsOf(schema, sides, 'both')}} ${SATISFIES};
`;
}

/** Returns the module with the codes that the page alone raises. */
export const pageCodesTs = (schema, sides, header) => `${header}import type { CodeRow } from './codes.js';

/** The dotted words that the page alone raises. */
export const PAGE_CODES = {\n${rowsOf(schema, sides, 'page')}} ${SATISFIES};
`;

/** Returns the module with the codes of the worker: those that it alone raises, the core's, and the settings that the core's may name. */
export function workerCodesTs(schema, sides, keys, header) {
  // Settings have another case in TypeScript.
  const names = [...new Set(keys)].filter((key) => key.includes('_')).sort();
  const rows = schema.codes.filter(({ raiser }) => raiser === 'core').map((code) => rowOf(code));
  return `${header}import type { CodeRow, Row } from './codes.js';

/** The dotted words that the worker's TypeScript alone raises. */
export const WORKER_CODES = {\n${rowsOf(schema, sides, 'worker')}} ${SATISFIES};

/** Sentences of the codes that the core alone raises. */
export const CORE_SENTENCES: Readonly<Record<string, Row>> = {\n${rows.join('')}};

/** Settings whose names have several words, as the core writes them. */
export const SETTINGS = '${names.join(' ')}';
`;
}

/** Returns the document of all codes. */
export function errorsMd({ codes }) {
  const said = (text) =>
    inTable(text)
      .replaceAll('<', '&lt;')
      .replace(/(?<!\.)$/, text.endsWith('}') ? '' : '.');
  const rows = codes.map(({ word, class: of, sentence, hint }) =>
    row([`\`${word}\``, of === 'WARNING' ? 'warning' : `\`${of}\``, said(sentence), hint === '' ? '' : said(hint)]),
  );
  return `${ERRORS_HEAD}\n${[row(['code', 'class', 'sentence', 'what to do']), '|---|---|---|---|', ...rows].join('\n')}\n`;
}

const ERRORS_HEAD = `<!-- Made by npm run generate; not for editing. -->
# Errors and warnings

Every dotted code, its class and its sentence, which \`TabtuneError.message\`, the \`message\` of a warning and the
terminal have. A code is in \`detail.code\` of an error, in \`code\` of a warning, and at the end of a line in the
terminal; it is never renamed. Places in braces are filled with values of the occurrence; text in brackets is left out
where it has none, and of several texts the first that has its values is taken. The code that finds a fault may give
other advice than the table.
`;
