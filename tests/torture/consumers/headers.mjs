// Reads the headers of GGUF files with @huggingface/gguf.
//   node headers.mjs LIBRARY PATHS.json RESULTS.json
import { readFileSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const [, , library, pathsPath, resultsPath] = process.argv;
const { gguf, GGMLQuantizationType } = await import(pathToFileURL(library).href);
const results = [];
for (const path of JSON.parse(readFileSync(pathsPath, 'utf8'))) {
  const { metadata, tensorInfos } = await gguf(path, { allowLocalFile: true });
  const { version, tensor_count, kv_count, ...said } = metadata;
  const tensors = tensorInfos.map(({ name, dtype, shape, offset }) => ({
    name,
    dtype: GGMLQuantizationType[dtype],
    shape: shape.map(Number).reverse(),
    offset: Number(offset),
  }));
  results.push({
    version,
    counts: [Number(tensor_count), Number(kv_count)],
    metadata: said,
    tensors,
  });
}
writeFileSync(
  resultsPath,
  JSON.stringify(results, (_, value) => (typeof value === 'bigint' ? Number(value) : value)),
);
