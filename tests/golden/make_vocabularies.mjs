// node tests/golden/make_vocabularies.mjs: writes vocabularies.json, what llama.cpp (node-llama-cpp 3.22.1) makes of GGUF vocabularies with keys left
// out, of other types, or with other words: ids of texts, ends, and whether a text begins with its token.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../../web/toolchain.mjs';
import { installNode } from '../torture/consumers/install.mjs';
import { readsVocabularies } from '../torture/consumers/programs.mjs';
import { BASES, TEXTS } from '../torture/consumers/border-vocabularies.mjs';
import { cases, file } from '../torture/consumers/vocabulary-cases.mjs';

await installNode();
const work = mkdtempSync(join(tmpdir(), 'vocabularies-'));
const asked = cases();
const jobs = asked.map((one, at) => {
  const path = join(work, `${at}.gguf`);
  writeFileSync(path, file(one));
  return { path, texts: TEXTS };
});
const results = await readsVocabularies(work, jobs);
rmSync(work, { recursive: true });
// Most lists of ids occur many times.
const [lists, places] = [[], new Map()];
const place = (ids) => {
  const words = JSON.stringify(ids);
  if (!places.has(words)) places.set(words, lists.push(words) - 1);
  return places.get(words);
};
const lines = asked.map(({ kind, base, keys, title }, at) => {
  const { refused, ids, bos, begins, ends } = results[at];
  const found = refused === undefined ? { ids: ids.map(place), bos, begins, ends } : { refused: true };
  return JSON.stringify({ kind, base, keys, ...(title && { title }), ...found });
});
const bases = Object.entries(BASES).map(([name, base]) => `${JSON.stringify(name)}: ${JSON.stringify(base)}`);
const parts = [`"texts": ${JSON.stringify(TEXTS)}`, `"bases": {\n${bases.join(',\n')}\n}`, `"ids": [\n${lists.join(',\n')}\n]`];
writeFileSync(join(root, 'tests', 'golden', 'vocabularies.json'), `{${parts.join(',\n')},\n"cases": [\n${lines.join(',\n')}\n]}\n`);
console.log(`${lines.length} vocabularies, ${lists.length} lists of ids`);
