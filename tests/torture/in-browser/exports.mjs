// Runs in the page: models of served files, and their exports.
import { digest, settled, tabtune, tell, workers } from './subject.mjs';

/** Returns the served files of these names in `folder`. */
export const fetched = (folder, names) =>
  Promise.all(
    names.map(
      async (name) =>
        new File([await (await fetch(`${folder}/${encodeURIComponent(name)}`)).blob()], name),
    ),
  );

/** Opens a model, lets `work` use it, and ends its worker. */
export async function withModel(files, work, options = {}) {
  const model = await tabtune.openModel(files, { worker: workers(), ...options });
  try {
    return await work(model);
  } finally {
    await model.dispose();
  }
}

/** Summarises an export: name, size and SHA-256 of each file, or the code of its refusal. */
export async function summed(model, options) {
  const { ok, value, word, message } = await settled(model.exportFiles(options));
  if (!ok) return { refused: word, message };
  return {
    files: await Promise.all(
      value.map(async ({ name, blob }) => [name, blob.size, await digest(blob)]),
    ),
  };
}

/** Returns one file of an export, under another name. */
export async function exportedAs(name, model, options) {
  const files = await model.exportFiles(options);
  return new File([files.find((file) => file.name !== 'tabtune.receipt.json').blob], name);
}

/** Returns all files of an export except its receipt, as a user would open them again. */
export async function folderOf(model, options = {}) {
  const files = await model.exportFiles(options);
  return files
    .filter(({ name }) => name !== 'tabtune.receipt.json')
    .map(({ name, blob }) => new File([blob], name));
}

/** Returns the receipt of an export into a stream that stores nothing. */
export const receiptOf = (model, options) => model.exportTo(new WritableStream({}), options);

/** Returns the differences between the exports that a model offers and their actual results. `base` is passed where it is needed. */
export async function offered(model, { exports, contract }, base) {
  const wrong = [];
  for (const choice of exports) {
    const { format, type, ok, bytes, needs, reason } = choice;
    const options = {
      format,
      ...(format === 'safetensors' ? { dtype: type ?? 'stored' } : { type }),
      ...(needs ? { base } : {}),
    };
    const made = await settled(model.exportFiles(options));
    const words = JSON.stringify(choice);
    if (ok !== made.ok || ok !== (reason === undefined))
      wrong.push(`${words}: ${made.ok ? 'was made' : made.message}`);
    else if (!ok && format !== 'json' && made.message !== reason)
      wrong.push(`${words}: ${made.message}`);
    else if (ok) {
      const found = made.value.reduce((sum, { blob }) => sum + blob.size, 0);
      if (bytes !== undefined && found !== bytes) wrong.push(`${words}: ${found} bytes`);
      if (!made.value.some(({ name }) => name === 'tabtune.receipt.json'))
        wrong.push(`${words}: no receipt`);
    }
  }
  const any = (format, plain) =>
    exports.some(
      (choice) => choice.format === format && choice.ok && (!plain || choice.type === undefined),
    );
  const cell = (surface) =>
    contract.surfaces.find((row) => row.surface === surface).export.support !== 'unsupported';
  // With values as bytes, a JSON document can also hold blocks, which numbers cannot.
  const json = (await settled(model.exportFiles({ format: 'json', encoding: 'base64' }))).ok;
  for (const [surface, expected] of [
    ['gguf', any('gguf')],
    ['hf_folder', any('safetensors', true)],
    ['torch_state_dict_json', json],
  ]) {
    if (cell(surface) !== expected)
      wrong.push(`${surface} is ${cell(surface) ? '' : 'not '}in the contract`);
  }
  return { wrong, choices: exports.length };
}

/** Returns the files of a LoRA adapter with pairs for the embedding and the head of a Llama of these sizes. */
export function adapterFiles({ vocab, hidden }) {
  const rank = 2;
  const pairs = {
    'embed_tokens.lora_embedding_A': [rank, vocab],
    'embed_tokens.lora_embedding_B': [hidden, rank],
  };
  const header = {};
  const parts = [];
  let end = 0;
  for (const [name, [rows, columns]] of Object.entries(pairs)) {
    header[`base_model.model.model.${name}`] = {
      dtype: 'F32',
      shape: [rows, columns],
      data_offsets: [end, (end += 4 * rows * columns)],
    };
    parts.push(Float32Array.from({ length: rows * columns }, (_, at) => ((at * 31) % 61) / 1000));
  }
  const json = new TextEncoder().encode(JSON.stringify(header));
  const front = new DataView(new ArrayBuffer(8));
  front.setBigUint64(0, BigInt(json.byteLength), true);
  const config = {
    peft_type: 'LORA',
    r: rank,
    lora_alpha: 4,
    target_modules: ['embed_tokens'],
    bias: 'none',
    task_type: 'CAUSAL_LM',
  };
  return [
    new File([front.buffer, json, ...parts], 'adapter_model.safetensors'),
    new File([JSON.stringify(config)], 'adapter_config.json'),
  ];
}

/**
 * Exports a model in each of these formats into the origin's private files; returns the measurements, including the growth of wasm memory since the
 * start, and the last file if it is `kept`.
 * @param {File[]} files @param {import('tabtune').ExportOptions[]} ways @param {{ kept?: boolean, base?: File, mergeAdapter?: File[] }} how
 */
export async function measured(files, ways, { kept = false, base, ...options } = {}) {
  const home = await navigator.storage.getDirectory();
  const rows = [];
  /** @type {[string, File] | undefined} */
  let last;
  const row = async (call, from, more) => {
    const { wasm, wasmAtStart, blobs, reads } = await tell('counts');
    rows.push({
      call,
      grown: wasm - wasmAtStart,
      blobs,
      reads,
      ms: performance.now() - from,
      ...more,
    });
    await tell('reset');
  };
  const opening = performance.now();
  await withModel(
    files,
    async (model) => {
      await row('open', opening, {});
      for (const { base: patched, ...way } of ways) {
        const name = crypto.randomUUID();
        const isFolder = way.format === undefined;
        const target = await (isFolder
          ? home.getDirectoryHandle(name, { create: true })
          : home.getFileHandle(name, { create: true }));
        const fileOf = () =>
          'getFile' in target
            ? target.getFile()
            : target.getFileHandle('model.safetensors').then(
                (handle) => handle.getFile(),
                () => undefined,
              );
        const from = performance.now();
        const { ok, value, word } = await settled(
          model.exportTo(target, patched ? { ...way, base } : way),
        );
        const written = await fileOf();
        await row(
          [
            way.format ?? 'folder',
            way.type ?? way.dtype ?? way.encoding,
            patched ? 'into its base' : '',
          ]
            .join(' ')
            .trim(),
          from,
          {
            refused: ok ? undefined : word,
            bytes: written?.size ?? 0,
            told: value?.outputs.reduce((sum, { bytes }) => Math.max(sum, bytes), 0) ?? 0,
          },
        );
        if (kept && written && !isFolder) last = [name, new File([written], `${name}.gguf`)];
        else await home.removeEntry(name, { recursive: true });
      }
    },
    options,
  );
  return { rows, last, removed: async () => last && home.removeEntry(last[0]) };
}
