// The dotted words of every error and warning, from the two tables that raise them: `node web/codes.mjs --write` puts them into web/README.md.
// A word outside its table compiles in neither language: Rust's `word!()` and the type `Word` of TypeScript see to that.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
export const README = join(root, 'web', 'README.md');
const [BEGIN, END] = ['<!-- codes: node web/codes.mjs --write -->', '<!-- end of codes -->'];

const words = (text, pattern) => [...text.matchAll(pattern)].map((match) => match[1]);

/** The words of a table of which each row has one, quoted, in front. */
function table(...path) {
  const found = words(readFileSync(join(root, ...path), 'utf8'), /^ +["']([a-z0-9_]+(?:[.][a-z0-9-]+)+)["'][,:]/gm);
  if (found.length === 0) throw new Error(`${path.join('/')} has no words`);
  return found;
}

/** All dotted words, sorted. */
export function codes() {
  return [...new Set([...table('crate', 'src', 'error', 'word_list.rs'), ...table('web', 'src', 'protocol', 'words.ts')])].sort();
}

/** The list as it stands in the README. */
export function listed(readme) {
  const list = readme.slice(readme.indexOf(BEGIN), readme.indexOf(END));
  return words(list, /`([^`]+)`/g);
}

if (process.argv.includes('--write')) {
  const readme = readFileSync(README, 'utf8');
  const groups = new Map();
  for (const code of codes()) {
    const area = code.slice(0, code.indexOf('.'));
    groups.set(area, [...(groups.get(area) ?? []), code]);
  }
  const list = [...groups.values()].map((group) => `- ${group.map((code) => `\`${code}\``).join(', ')}`).join('\n');
  const [before, rest] = [readme.slice(0, readme.indexOf(BEGIN)), readme.slice(readme.indexOf(END))];
  writeFileSync(README, `${before}${BEGIN}\n${list}\n${rest}`);
}
