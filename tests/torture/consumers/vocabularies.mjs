// Vocabularies of GGUF files with keys left out, of other types, or with other words: what llama.cpp and tabtune make of them.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { installNode } from './install.mjs';
import { readsVocabularies } from './programs.mjs';
import { TEXTS } from './border-vocabularies.mjs';
import { cases, file } from './vocabulary-cases.mjs';

/** Returns what tabtune makes of a file: the ids of the texts, and the ends and the beginning of texts as its folder states them. */
async function own(tabtune, work, path, at) {
  const folder = join(work, `folder-${at}`);
  try {
    const ids = await Promise.all(TEXTS.map((text) => tabtune.ids(path, text)));
    await tabtune.convert(path, folder, '--format', 'safetensors');
    const json = (name) => JSON.parse(readFileSync(join(folder, name), 'utf8'));
    const [{ eos_token_id: ends = [], bos_token_id: bos = null }, settings] = [
      json('generation_config.json'),
      json('tokenizer_config.json'),
    ];
    return { ids, ends: [ends].flat(), bos, begins: settings.add_bos_token };
  } catch (/** @type {any} */ error) {
    return { refused: String(error.message) };
  }
}

const sorted = (ids) => String([...ids].sort((a, b) => a - b));

export async function vocabularies({ tabtune, work, fail }) {
  await installNode();
  const asked = cases();
  const path = (at) => join(work, `${at}.gguf`);
  asked.forEach((one, at) => writeFileSync(path(at), file(one)));
  const theirs = await readsVocabularies(
    work,
    asked.map((_, at) => ({ path: path(at), texts: TEXTS })),
  );
  const kinds = new Map();
  for (const [at, one] of asked.entries()) {
    const kind = `${one.kind}, ${one.base}`;
    const row = kinds.get(kind) ?? { files: 0, texts: 0, ids: 0, ends: 0, both: 0, here: 0 };
    kinds.set(kind, row);
    const [expected, found] = [theirs[at], await own(tabtune, work, path(at), at)];
    const name = `${kind}: ${JSON.stringify(one.keys).slice(0, 200)}`;
    row.files++;
    if (expected.refused) {
      if (found.refused) row.both++;
      else fail(`${name}: llama.cpp refuses it`);
      continue;
    }
    if (found.refused) {
      row.here++;
      if (!/tokenizer\.|no tokenizer/.test(found.refused)) fail(`${name}: ${found.refused}`);
      continue;
    }
    row.texts += TEXTS.length;
    const equal = TEXTS.filter(
      (_, text) => String(expected.ids[text]) === String(found.ids?.[text]),
    );
    row.ids += equal.length;
    for (const text of TEXTS.filter((text) => !equal.includes(text)))
      fail(`${name}: ids of ${JSON.stringify(text)}`);
    const ends = sorted(expected.ends) === sorted(found.ends);
    const begins =
      Boolean(found.begins) === expected.begins &&
      (expected.bos === null || found.bos === expected.bos);
    if (ends && begins) row.ends++;
    else
      fail(
        `${name}: ends ${sorted(found.ends)}, not ${sorted(expected.ends)}; begins ${found.begins}, not ${expected.begins}`,
      );
  }
  const rows = [...kinds].map(([kind, row]) => [
    kind,
    row.files,
    `${row.ids} of ${row.texts}`,
    `${row.ends} of ${row.files - row.both - row.here}`,
    row.both,
    row.here,
  ]);
  return {
    title: 'vocabularies with keys left out, of other types, or with other words',
    words: `${asked.length} GGUF files of two vocabularies, one of bytes and one of pieces, whose tokens cross every border that a rule can have. For
      each kind: the texts to which tabtune gives llama.cpp's ids; the files in which the same tokens end a text and the same one begins it; the files
      that both refuse; and those that tabtune alone refuses by name: without a word for the rule of bytes, or with the word default or gemma4, and
      pieces without scores.`,
    columns: [
      'kind',
      'files',
      'ids',
      'ends and beginnings',
      'refused by both',
      'refused by tabtune',
    ],
    rows,
  };
}
