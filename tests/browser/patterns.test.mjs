// Expressions of tokenizers in the core of a real browser, whose engine is not Hugging Face's. The table is that of the Rust tests.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { built } from '../../web/core-kind.mjs';
import { root } from '../../web/toolchain.mjs';
import { siteAndBrowser } from './hooks.mjs';

const { tokens, texts, rows } = JSON.parse(
  readFileSync(join(root, 'tests', 'golden', 'patterns.json'), 'utf8'),
);
const SHAPE = {
  model_type: 'llama',
  hidden_size: 8,
  intermediate_size: 8,
  num_hidden_layers: 1,
  num_attention_heads: 2,
  max_position_embeddings: 16,
  rms_norm_eps: 1e-5,
};
const at = siteAndBrowser({ '/pkg/': built.core });

/** Returns a tokenizer.json whose texts are split by these expressions, one after another. */
function splitBy(expressions) {
  const pretokenizers = expressions.map((text) => ({
    type: 'Split',
    pattern: { Regex: text },
    behavior: 'Isolated',
    invert: false,
  }));
  const vocab = Object.fromEntries(tokens.map((token, id) => [token, id]));
  return JSON.stringify({
    version: '1.0',
    added_tokens: [],
    pre_tokenizer: { type: 'Sequence', pretokenizers },
    model: {
      type: 'WordPiece',
      unk_token: 'a',
      continuing_subword_prefix: '##',
      max_input_chars_per_word: 10000,
      vocab,
    },
  });
}

/** Returns the lengths of the words that ids show. */
function lengths(ids) {
  const found = [];
  for (const id of ids) {
    if (tokens[id].startsWith('##')) found[found.length - 1]++;
    else found.push(1);
  }
  return found;
}

test('regular expressions split text as in Oniguruma', async () => {
  const all = Object.values(rows).flat();
  const { page } = await at.open('/');
  const found = await page.evaluate(
    async ({ documents, texts, shape }) => {
      const path = '/pkg/tabtune.js';
      const core = await import(path);
      const { __wasm_call_ctors: construct } = await core.default();
      construct();
      const encode = new TextEncoder();
      const one = async (document) => {
        try {
          const model = await core.ModelHandle.fromScratch(
            shape,
            encode.encode(document),
            {},
            {},
            false,
          );
          const ids = texts.map((text) => Array.from(model.tokenize(text).ids));
          model.free();
          return ids;
        } catch (error) {
          return JSON.stringify(error);
        }
      };
      const answers = [];
      for (const document of documents) answers.push(await one(document));
      return answers;
    },
    { documents: all.map(({ expressions }) => splitBy(expressions)), texts, shape: SHAPE },
  );
  let compared = 0;
  for (const [row, { expressions, words, refused }] of all.entries()) {
    const answer = found[row];
    if (words === undefined || refused !== undefined) {
      assert.match(String(answer), /tokenizer\.invalid/, expressions.join(' then '));
      continue;
    }
    assert.ok(Array.isArray(answer), `${expressions.join(' then ')}: ${answer}`);
    assert.deepEqual(answer.map(lengths), words, expressions.join(' then '));
    compared += words.length;
  }
  assert.ok(compared > 2500, `${compared} texts compared`);
});
