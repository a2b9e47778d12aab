// Reads the vocabularies of GGUF files in llama.cpp: node llamacpp-vocabularies.mjs NODE_LLAMA_CPP JOBS.json RESULTS.json
// jobs: [{ path, texts }]; results, a line each: { ids, bos, begins, ends }, or { refused }. llama.cpp ends the process at some faults: the caller
// starts it again after the file that has no line.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const [, , library, jobsPath, resultsPath] = process.argv;
const { getLlama } = await import(pathToFileURL(library).href);
const llama = await getLlama({ gpu: false, build: 'never', logLevel: 'disabled', maxThreads: 1 });
const done = existsSync(resultsPath) ? readFileSync(resultsPath, 'utf8').split('\n').length - 1 : 0;

async function read({ path, texts }) {
  const model = await llama.loadModel({ modelPath: path, vocabOnly: true });
  const ids = texts.map((text) => [...model.tokenize(text, true)]);
  // The package hides the id of a token that is not marked as special, which llama.cpp puts before a text all the same.
  const begins = model._model.shouldPrependBosToken();
  const bos = begins ? (model.tokens.bos ?? null) : null;
  const count = model.fileInfo.metadata.tokenizer.ggml.tokens.length;
  const ends = Array.from({ length: count }, (_, id) => id).filter((id) => model.isEogToken(id));
  await model.dispose();
  return { ids, bos, begins, ends };
}

for (const job of JSON.parse(readFileSync(jobsPath, 'utf8')).slice(done)) {
  const result = await read(job).catch((error) => ({ refused: String(error.message) }));
  appendFileSync(resultsPath, `${JSON.stringify(result)}\n`);
}
process.exit(0);
