// Runs GGUF files in llama.cpp, on the CPU with one thread.
//   node llamacpp.mjs NODE_LLAMA_CPP JOBS.json RESULTS.json
// jobs: [{ path, lora?, ids?, wanted?, halves?, texts?, answers? }], `lora` a GGUF file of an adapter; results: after each prefix of `ids` its best
// token and the log-probabilities of the tokens wanted there (`halves`: with its usual cache of keys and values, F16); for each text its ids, and the
// text of those ids; for each of `answers`, { text, tokens }, its most likely continuation.
import { readFileSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const [, , library, jobsPath, resultsPath] = process.argv;
const { getLlama } = await import(pathToFileURL(library).href);
const llama = await getLlama({ gpu: false, build: 'never', logLevel: 'error', maxThreads: 1 });

async function positions(model, ids, wanted, kept, adapter) {
  // The error of its flash attention, or of an F16 cache, is larger than that of the weights of a file.
  const options = {
    contextSize: 128,
    threads: 1,
    flashAttention: false,
    experimentalKvCacheKeyType: kept,
    experimentalKvCacheValueType: kept,
  };
  const lora = adapter && { adapters: [{ filePath: adapter, scale: 1 }] };
  const context = await model.createContext({ ...options, lora });
  const answer = await context
    .getSequence()
    .controlledEvaluate(ids.map((id) => [id, { generateNext: { probabilities: true } }]));
  await context.dispose();
  return answer.map(({ next: { probabilities } }, at) => ({
    best: probabilities.keys().next().value,
    of: wanted[at].map((id) => Math.log(probabilities.get(id) ?? 0)),
  }));
}

/** Returns the most likely tokens after a text, up to one that ends it, which is not included, at most `count`. */
async function answered(model, { text, tokens: count }) {
  const context = await model.createContext({
    contextSize: 512,
    threads: 1,
    flashAttention: false,
    experimentalKvCacheKeyType: 'F32',
    experimentalKvCacheValueType: 'F32',
  });
  const sequence = context.getSequence();
  const prompt = model.tokenize(text, true);
  const [ids, best] = [
    /** @type {number[]} */ ([]),
    async (tokens) => {
      const found = await sequence.controlledEvaluate(
        tokens.map((id, at) =>
          at + 1 < tokens.length ? id : [id, { generateNext: { probabilities: true } }],
        ),
      );
      return found.at(-1).next.probabilities.keys().next().value;
    },
  ];
  let next = await best(prompt);
  while (!model.isEogToken(next) && ids.length < count) {
    ids.push(next);
    next = await best([next]);
  }
  await context.dispose();
  return { prompt: prompt.length, ids, ended: model.isEogToken(next) && ids.length < count };
}

const results = [];
for (const { path, lora, ids, wanted, halves, texts, answers } of JSON.parse(
  readFileSync(jobsPath, 'utf8'),
)) {
  const model = await llama.loadModel({ modelPath: path });
  const tokens = (texts ?? []).map((text) => model.tokenize(text, true));
  const said = [];
  for (const asked of answers ?? []) said.push(await answered(model, asked));
  results.push({
    answers: said,
    positions: ids && (await positions(model, ids, wanted, halves ? 'F16' : 'F32', lora)),
    texts: tokens.map((each) => ({ ids: [...each], text: model.detokenize(each, true) })),
  });
  await model.dispose();
}
writeFileSync(resultsPath, JSON.stringify(results));
process.exit(0);
