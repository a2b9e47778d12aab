// The formats of exports in TypeScript, which `npm run generate` takes from the Rust code.

const quoted = (word) => `'${word}'`;

/** Returns the module with the formats; `header` is its first line. */
export function exportsTs({ exports }, header) {
  const camel = (key) => key.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
  const row = ({ word, about, ending, adapter, options }) =>
    `  ${/-/.test(word) ? quoted(word) : word}: { about: ${quoted(about)}, ending: ${quoted(ending)}, adapter: ${adapter}, options: [${options.map((key) => quoted(camel(key))).join(', ')}] },\n`;
  const words = exports.map(({ word }) => word);
  return `${header}/** Words of the formats of exports. */
export const EXPORT_WORDS = [${words.map(quoted).join(', ')}] as const;
export type ExportFormat = (typeof EXPORT_WORDS)[number];

/** Options of exports that only some formats have. */
export type OwnExportOption = ${[...new Set(exports.flatMap(({ options }) => options.map(camel)))].sort().map(quoted).join(' | ')};

/**
 * Formats of exports: a description, the ending of the one file (empty for a folder), whether it is the format of a trained adapter alone, and the
 * options that it has and not all formats have.
 */
export const EXPORT_FORMATS: Readonly<Record<ExportFormat, { about: string; ending: string; adapter: boolean; options: readonly OwnExportOption[] }>> = {
${exports.map(row).join('')}};
`;
}
