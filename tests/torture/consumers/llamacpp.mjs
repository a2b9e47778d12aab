// What llama.cpp makes of GGUF files, on the CPU with one thread.
//   node llamacpp.mjs NODE_LLAMA_CPP JOBS.json RESULTS.json
// jobs: [{ path, lora?, ids?, wanted?, halves?, texts? }], `lora` a GGUF file of an adapter; results: after each prefix of `ids` its best token and the log-probabilities of the tokens wanted
// there (`halves`: with its usual cache of keys and values, F16); for each text its ids, and the text of those ids.
import { readFileSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const [, , library, jobsPath, resultsPath] = process.argv;
const { getLlama } = await import(pathToFileURL(library).href);
const llama = await getLlama({ gpu: false, build: 'never', logLevel: 'error', maxThreads: 1 });

async function positions(model, ids, wanted, kept, adapter) {
  // Its flash attention, and an F16 cache, are off by more than the weights of a file are.
  const options = { contextSize: 128, threads: 1, flashAttention: false, experimentalKvCacheKeyType: kept, experimentalKvCacheValueType: kept };
  const lora = adapter && { adapters: [{ filePath: adapter, scale: 1 }] };
  const context = await model.createContext({ ...options, lora });
  const answer = await context.getSequence().controlledEvaluate(ids.map((id) => [id, { generateNext: { probabilities: true } }]));
  await context.dispose();
  return answer.map(({ next: { probabilities } }, at) => ({
    best: probabilities.keys().next().value,
    of: wanted[at].map((id) => Math.log(probabilities.get(id) ?? 0)),
  }));
}

const results = [];
for (const { path, lora, ids, wanted, halves, texts } of JSON.parse(readFileSync(jobsPath, 'utf8'))) {
  const model = await llama.loadModel({ modelPath: path });
  const tokens = (texts ?? []).map((text) => model.tokenize(text, true));
  results.push({
    positions: ids && (await positions(model, ids, wanted, halves ? 'F16' : 'F32', lora)),
    texts: tokens.map((each) => ({ ids: [...each], text: model.detokenize(each, true) })),
  });
  await model.dispose();
}
writeFileSync(resultsPath, JSON.stringify(results));
process.exit(0);
