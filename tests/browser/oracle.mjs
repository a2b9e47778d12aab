// The reference cases in a real browser, through the public API:
//   node tests/browser/oracle.mjs ORACLE.json ASSETS [ID-PREFIX ...]
// Runs the kinds next, greedy and ce; the others need batches that the API does not accept, and are left to the native runner. Prints one JSON object
// per case, then {"cases":n,"failed":m}; the exit code is 1 if any failed.
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { launch } from './engines.mjs';
import { serve } from './site.mjs';

const PROBABILITY = 1e-4; // ten times the observed effect of f32 sums in another order
const LOSS = 1e-4; // relative

const [oracleFile, assets, ...prefixes] = process.argv.slice(2);
if (!assets)
  throw new Error('usage: node tests/browser/oracle.mjs ORACLE.json ASSETS [ID-PREFIX ...]');
const wanted = ({ id, kind }) =>
  ['next', 'greedy', 'ce'].includes(kind) &&
  (prefixes.length === 0 || prefixes.some((prefix) => id.startsWith(prefix)));
const cases = JSON.parse(readFileSync(oracleFile, 'utf8')).cases.filter(wanted);

/** Returns the addresses of a model's files below the assets. */
function filesOf(model) {
  const path = join(assets, model);
  if (!statSync(path).isDirectory()) return [model];
  return readdirSync(path).map((name) => `${model}/${name}`);
}

/** Runs in the page: one case on an opened model. */
async function runCase({ test, files, vocabulary, adapter, text }) {
  const tabtune = await import('/dist/index.js');
  const fetched = async (path) =>
    new File([await (await fetch(`/assets/${path}`)).blob()], path.split('/').pop());
  const all = (paths) => Promise.all(paths.map(fetched));
  const model = await tabtune.openModel(
    await all(files),
    adapter ? { mergeAdapter: await all(adapter) } : {},
  );
  if (test.kind === 'ce') {
    const words = vocabulary ? await tabtune.openModel(await all(vocabulary)) : undefined;
    const from = test.start ?? 0;
    const ids = (await (words ?? model).tokenize(text)).slice(from, from + test.count + 1);
    await words?.dispose();
    const data = { tokens: Uint32Array.from(ids), name: 'text.tokens' };
    const trainer = await tabtune.Trainer.create({
      model,
      data,
      batchSize: 1,
      seqLen: test.count,
      steps: 1,
      learningRate: 1e-9,
      optimizer: { type: 'sgd' },
    });
    const [step] = await trainer.step(1);
    await trainer.dispose();
    return {
      ids: ids.slice(0, test.expect.first_ids.length),
      loss: step.loss,
      tokens: step.tokens,
    };
  }
  const ids = await model.tokenize(test.prompt);
  const trainer = await tabtune.Trainer.create({
    model,
    data: { text: 'A text to make a trainer with. '.repeat(8) },
    batchSize: 1,
    seqLen: 4,
  });
  const tokens = [];
  const options = { maxTokens: test.count ?? 1, temperature: 0, topLogprobs: 5 };
  for await (const token of trainer.sample(test.prompt, options)) tokens.push(token);
  await trainer.dispose();
  return { ids, tokens };
}

function judge({ kind, expect }, found) {
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  if (kind === 'ce') {
    const error = Math.abs(found.loss - expect.mean) / expect.mean;
    return {
      ok: same(found.ids, expect.first_ids) && error <= LOSS,
      error,
      bound: LOSS,
      loss: found.loss,
    };
  }
  if (kind === 'greedy') {
    const ids = found.tokens.map((token) => token.id);
    const wrong = expect.ids.filter((id, index) => id !== ids[index]).length;
    return { ok: wrong === 0, error: wrong, bound: 0 };
  }
  const { top } = found.tokens[0];
  // A token that the tokenizer lacks is not sampled.
  const known = expect.top5.filter(({ id }) => top.some((token) => token.id === id));
  const error =
    known.length < 4
      ? Infinity
      : Math.max(
          ...known.map(({ id, prob }, at) =>
            top[at].id === id ? Math.abs(top[at].prob - prob) : Infinity,
          ),
        );
  return {
    ok: same(found.ids, expect.ids) && error <= PROBABILITY,
    error: Number.isFinite(error) ? error : String(error),
    bound: PROBABILITY,
  };
}

const site = await serve({ '/assets/': resolve(assets) });
const browser = await launch();
let failed = 0;
try {
  for (const test of cases) {
    const started = Date.now();
    const { page, record } = await browser.open(`${site.url}/`);
    let result;
    try {
      const text = test.text
        ? readFileSync(join(assets, test.text), 'utf8').slice(0, 16_000)
        : undefined;
      result = judge(
        test,
        await page.evaluate(runCase, {
          test,
          files: filesOf(test.model),
          vocabulary: test.tokenizer && filesOf(dirname(test.tokenizer)),
          adapter: test.lora && filesOf(test.lora),
          text,
        }),
      );
    } catch (/** @type {any} */ error) {
      result = { ok: false, message: error.message };
    }
    await page.close();
    if (record.errors.length > 0) result = { ...result, ok: false, console: record.errors };
    if (!result.ok) failed++;
    console.log(
      JSON.stringify({
        id: test.id,
        kind: test.kind,
        ...result,
        secs: (Date.now() - started) / 1000,
      }),
    );
  }
} finally {
  await browser.close();
  await site.close();
}
console.log(JSON.stringify({ oracle: basename(oracleFile), cases: cases.length, failed }));
process.exitCode = failed === 0 ? 0 : 1;
