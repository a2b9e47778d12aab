// Tables in documents that are written by hand.

/** Returns the document with a new table in the section of this heading. */
export function withTable(document, heading, table) {
  const lines = document.split('\n');
  const start = lines.indexOf(heading);
  if (start === -1) throw new Error(`no heading ${heading}`);
  const begin = lines.findIndex((line, at) => at > start && line.startsWith('|'));
  const next = lines.findIndex((line, at) => at > start && line.startsWith('#'));
  if (begin === -1 || (next !== -1 && next < begin)) throw new Error(`no table under ${heading}`);
  const end = lines.findIndex((line, at) => at > begin && !line.startsWith('|'));
  return [...lines.slice(0, begin), table, ...lines.slice(end)].join('\n');
}

/** Returns the document with an empty section added to `chapter`; text outside its table is written by hand. */
export function withSection(document, chapter, heading) {
  const end = document.indexOf('\n## ', document.indexOf(chapter) + chapter.length);
  const at = end === -1 ? document.length : end + 1;
  return `${document.slice(0, at)}${heading}\n\n|\n\n${document.slice(at)}`;
}
