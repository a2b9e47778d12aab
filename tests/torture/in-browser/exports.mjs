// Runs in the page: models of served files, and what they become.
import { digest, settled, tabtune, workers } from './subject.mjs';

/** The served files of these names in `folder`. */
export const fetched = (folder, names) => Promise.all(names.map(async (name) => new File([await (await fetch(`${folder}/${encodeURIComponent(name)}`)).blob()], name)));

/** Opens a model, lets `work` use it, and ends its worker. */
export async function withModel(files, work, options = {}) {
  const model = await tabtune.openModel(files, { worker: workers(), ...options });
  try {
    return await work(model);
  } finally {
    model.dispose();
  }
}

/** An export in a few words: name, size and SHA-256 of each file, or how it was refused. */
export async function summed(model, options) {
  const { ok, value, word, message } = await settled(model.exportFiles(options));
  if (!ok) return { refused: word, message };
  return { files: await Promise.all(value.map(async ({ name, blob }) => [name, blob.size, await digest(blob)])) };
}

/** One file of an export, under another name. */
export async function exportedAs(name, model, options) {
  const files = await model.exportFiles(options);
  return new File([files.find((file) => file.name !== 'tabtune.receipt.json').blob], name);
}

/** All files of an export but its receipt, as a user would open them again. */
export async function folderOf(model, options = {}) {
  const files = await model.exportFiles(options);
  return files.filter(({ name }) => name !== 'tabtune.receipt.json').map(({ name, blob }) => new File([blob], name));
}

/** The receipt of an export into a stream that keeps nothing. */
export const receiptOf = (model, options) => model.exportTo(new WritableStream({}), options);

/** What differs between what a model is said to be able to become and what its exports then are. `base` is given where it is needed. */
export async function offered(model, { exports, contract }, base) {
  const wrong = [];
  for (const choice of exports) {
    const { format, type, ok, bytes, needs, reason } = choice;
    const options = { format, ...(format === 'safetensors' ? { dtype: type ?? 'stored' } : { type }), ...(needs ? { base } : {}) };
    const made = await settled(model.exportFiles(options));
    const words = JSON.stringify(choice);
    if (ok !== made.ok || ok !== (reason === undefined)) wrong.push(`${words}: ${made.ok ? 'was made' : made.message}`);
    else if (!ok && format !== 'json' && made.message !== reason) wrong.push(`${words}: ${made.message}`);
    else if (ok) {
      const found = made.value.reduce((sum, { blob }) => sum + blob.size, 0);
      if (bytes !== undefined && found !== bytes) wrong.push(`${words}: ${found} bytes`);
      if (!made.value.some(({ name }) => name === 'tabtune.receipt.json')) wrong.push(`${words}: no receipt`);
    }
  }
  const any = (format, plain) => exports.some((choice) => choice.format === format && choice.ok && (!plain || choice.type === undefined));
  const cell = (surface) => contract.surfaces.find((row) => row.surface === surface).export.support !== 'unsupported';
  for (const [surface, expected] of [['gguf', any('gguf')], ['hf_folder', any('safetensors', true)], ['torch_state_dict_json', any('json')]]) {
    if (cell(surface) !== expected) wrong.push(`${surface} is ${cell(surface) ? '' : 'not '}in the contract`);
  }
  return { wrong, choices: exports.length };
}
