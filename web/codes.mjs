// The dotted words of every error, collected from the sources: `node web/codes.mjs --write` puts them into web/README.md.
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
export const README = join(root, 'web', 'README.md');
const [BEGIN, END] = ['<!-- codes: node web/codes.mjs --write -->', '<!-- end of codes -->'];

function sources(folder, ending) {
  return readdirSync(folder)
    .map((name) => join(folder, name))
    .flatMap((path) => (statSync(path).isDirectory() ? sources(path, ending) : path.endsWith(ending) ? [readFileSync(path, 'utf8')] : []));
}

const words = (text, pattern) => [...text.matchAll(pattern)].map((match) => match[1]);
const WORD = '([a-z0-9_]+(?:[.][a-z0-9-]+)+)';

/** All dotted words, sorted. */
export function codes() {
  const rust = sources(join(root, 'crate', 'src'), '.rs').flatMap((text) => [
    ...words(text, new RegExp(`Refusal::new\\(\\s*"${WORD}"`, 'g')),
    ...words(text, /"((?:gguf|safetensors|index)\.[a-z0-9.-]+)"/g),
  ]);
  const error = readFileSync(join(root, 'crate', 'src', 'error', 'codes.rs'), 'utf8');
  const arms = words(error.slice(error.indexOf('pub fn code'), error.indexOf('pub fn kind')), new RegExp(`=> "${WORD}"`, 'g'));
  const typescript = sources(join(root, 'web', 'src'), '.ts').flatMap((text) => [
    ...words(text, new RegExp(`\\bcode: '${WORD}'`, 'g')),
    ...words(text, new RegExp(`(?:corrupt|refuse)\\([^\\n]*, '${WORD}'\\)`, 'g')),
  ]);
  return [...new Set([...rust, ...arms, ...typescript])].sort();
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
