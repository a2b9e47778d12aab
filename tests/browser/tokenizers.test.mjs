// Tokenizers that are learned in a tab: the vocabulary of Python's package, 20 MB with progress and an end at any time, and a new model with one.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '@playwright/test';
import { root } from '../../web/toolchain.mjs';
import { RUN, scenarios, SHAPE, TEXT } from './scenario.mjs';

const GOLDEN = JSON.parse(readFileSync(join(root, 'tests', 'golden', 'bpe.json'), 'utf8'));
const MAKER = readFileSync(join(root, 'tests', 'golden', 'make_bpe.py'), 'utf8');
/** A list of texts in make_bpe.py, which JSON can read after a change of its spelling. @param {string} name @returns {string[]} */
const listOf = (name) => {
  const found = new RegExp(`^${name} = (\\[.*?\\])`, 'm').exec(MAKER)?.[1] ?? '';
  return JSON.parse(found);
};
/** Maximum duration of learning 8,192 tokens from 20 MB. */
const MAX_SECS = 60;

const { inPage } = scenarios();

test('a tab learns the vocabulary that Python learns', async () => {
  const [{ seeds, size, ...settings }] = GOLDEN.cases;
  const between = /^BETWEEN = \[" "\] \* 24 \+ (\[.*\])$/m.exec(MAKER)?.[1] ?? '';
  const found = await inPage(
    async ({ tabtune }, { heads, tails, between, seed, size, settings }) => {
      let state = BigInt(seed);
      const below = (/** @type {number} */ count) => {
        state = BigInt.asUintN(64, state * 6364136223846793005n + 1442695040888963407n);
        return Number((state >> 33n) % BigInt(count));
      };
      const parts = [];
      const length = (/** @type {string} */ text) => new TextEncoder().encode(text).byteLength;
      for (let bytes = 0; bytes < size; bytes += length(String(parts.at(-1)))) {
        let word = '';
        for (let left = below(4) + 1; left > 0; left--)
          word += heads[below(below(heads.length) + 1)] + tails[below(below(tails.length) + 1)];
        parts.push(word + between[below(between.length)]);
      }
      const { json, vocabSize } = await tabtune.trainTokenizer(
        { text: parts.join('') },
        {
          vocabSize: settings.vocab_size,
          minFrequency: settings.min_frequency,
          specialTokens: settings.special_tokens,
        },
      );
      const sum = new Uint8Array(await crypto.subtle.digest('SHA-256', new Uint8Array(json)));
      return {
        vocabSize,
        sum: [...sum].map((byte) => byte.toString(16).padStart(2, '0')).join(''),
      };
    },
    {
      heads: listOf('HEADS'),
      tails: listOf('TAILS'),
      between: [...Array(24).fill(' '), ...JSON.parse(between.replaceAll("'\" '", '"\\" "'))],
      ...{ seed: seeds[0], size, settings },
    },
  );
  assert.deepEqual(found, { vocabSize: settings.tokens, sum: settings.document_sha256 });
});

test('20 MB are learned with progress, and an abort ends it', async () => {
  const found = await inPage(async ({ tabtune }) => {
    let state = 1;
    const below = (/** @type {number} */ count) => {
      state = (Math.imul(state, 1103515245) + 12345) >>> 0;
      return (state >>> 8) % count;
    };
    const letters = 'etaoinshrdlucmfwypvbgkjqxz';
    // Some 80,000 different words, small ones more often, as in a text of this size.
    const words = Array.from({ length: 80_000 }, () => {
      let word = '';
      for (let left = 2 + below(9); left > 0; left--) word += letters[below(1 + below(26))];
      return word;
    });
    const lines = Array.from({ length: 20_000 }, () => {
      let line = '';
      while (line.length < 100) line += `${words[below(1 + below(1 + below(80_000)))]} `;
      return `${line}\n`;
    });
    const blob = new Blob([lines.join('').repeat(10)]);
    const file = new File([blob.slice(0, 20_000_000)], 'large.txt');
    const fractions = /** @type {number[]} */ ([]);
    let ticks = 0;
    const clock = setInterval(() => ticks++, 10);
    const began = performance.now();
    const { vocabSize } = await tabtune.trainTokenizer(file, {
      onProgress: ({ phase, fraction }) => void (phase === 'read' && fractions.push(fraction)),
    });
    const secs = (performance.now() - began) / 1000;
    clearInterval(clock);
    const controller = new AbortController();
    let aborted = 0;
    const ended = await tabtune
      .trainTokenizer(file, {
        signal: controller.signal,
        onProgress: ({ fraction }) => {
          if (fraction < 0.1 || aborted > 0) return;
          aborted = performance.now();
          controller.abort();
        },
      })
      .catch((/** @type {Error} */ thrown) => thrown.name);
    return {
      ...{ size: file.size, vocabSize, secs, fractions, ended },
      endedMillis: performance.now() - aborted,
      ticks: ticks / (secs * 100),
    };
  });
  const { size, vocabSize, secs, fractions, ended, endedMillis, ticks } = found;
  console.log(`20 MB: ${secs.toFixed(1)} s, an abort ${endedMillis.toFixed(0)} ms`);
  assert.deepEqual([size, vocabSize, ended], [20_000_000, 8192, 'AbortError']);
  assert.ok(fractions.length > 50 && fractions.at(-1) === 1, String(fractions));
  assert.deepEqual(
    fractions,
    fractions.toSorted((a, b) => a - b),
  );
  assert.ok(secs < MAX_SECS, `${secs} s`);
  assert.ok(endedMillis < 1000, `${endedMillis} ms`);
  assert.ok(ticks > 0.2, `the page had ${ticks} of its time`);
});

test('a new model learns its tokenizer from its data, and trains', async () => {
  const found = await inPage(
    async ({ tabtune, losses }, { shape, text, run }) => {
      const data = [
        { text, name: 'one' },
        { text: `${text} The end.`, name: 'other' },
      ];
      const tokenizer = { train: 300 };
      const model = await tabtune.newModel(shape, data, { tokenizer });
      const { vocabSize } = model.info;
      const ids = await model.tokenize('a single man<|endoftext|>');
      const back = await model.detokenize(ids);
      const trainer = await tabtune.Trainer.create({ model, data, ...run });
      const { warnings, end } = trainer.data;
      const found = await losses(trainer, 3);
      const names = (await trainer.exportFiles()).map(({ name }) => name);
      await trainer.dispose();
      const made = await tabtune.trainTokenizer(data, { vocabSize: 300 });
      const other = await tabtune.newModel(shape, data, { tokenizer: made.json });
      const same = String(await other.tokenize('a single man<|endoftext|>')) === String(ids);
      await other.dispose();
      return { vocabSize, ids, back, warnings, end, losses: found, names, same };
    },
    { shape: SHAPE, text: TEXT, run: { ...RUN, autosave: false } },
  );
  assert.equal(found.vocabSize, 300);
  assert.equal(found.back, 'a single man<|endoftext|>');
  assert.ok(found.ids.length < 12 && found.ids.at(-1) === 0, String(found.ids));
  assert.deepEqual([found.warnings, found.end, found.same], [[], ['<|endoftext|>'], true]);
  assert.ok(Number(found.losses[2]) < Number(found.losses[0]), String(found.losses));
  assert.ok(
    found.names.includes('tokenizer.json') && found.names.includes('tokenizer_config.json'),
  );
});
