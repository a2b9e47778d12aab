// Tokenizers of folders as GGUF: llama.cpp gives the texts the ids of the folder, or the export is refused.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { safetensors } from '../safetensors.mjs';
import { BASES, TEXTS } from './border-vocabularies.mjs';
import { installNode } from './install.mjs';
import { texts } from './judge.mjs';
import { readsVocabularies } from './programs.mjs';
import { FOLDERS, documents } from './tokenizer-folders.mjs';

/** Number of texts. */
const COUNT = 52;

/** Returns a model of zeros as safetensors. */
function weights(rows) {
  const square = [
    'self_attn.q_proj',
    'self_attn.k_proj',
    'self_attn.v_proj',
    'self_attn.o_proj',
    'mlp.gate_proj',
    'mlp.up_proj',
    'mlp.down_proj',
  ];
  const norms = ['input_layernorm', 'post_attention_layernorm'];
  /** @type {(name: string, ...shape: number[]) => [string, number[]]} */
  const named = (name, ...shape) => [name, shape];
  const shapes = [
    named('model.embed_tokens.weight', rows, 8),
    named('model.norm.weight', 8),
    ...norms.map((name) => named(`model.layers.0.${name}.weight`, 8)),
    ...square.map((name) => named(`model.layers.0.${name}.weight`, 8, 8)),
  ];
  return safetensors(
    shapes.map(([name, shape]) => {
      const bytes = Buffer.alloc(4 * shape.reduce((a, b) => a * b));
      return [name, { dtype: 'F32', shape, bytes }];
    }),
  );
}

const config = (rows) => ({
  model_type: 'llama',
  architectures: ['LlamaForCausalLM'],
  hidden_act: 'silu',
  hidden_size: 8,
  intermediate_size: 8,
  num_hidden_layers: 1,
  num_attention_heads: 1,
  num_key_value_heads: 1,
  max_position_embeddings: 64,
  rms_norm_eps: 1e-5,
  rope_theta: 10000,
  tie_word_embeddings: true,
  vocab_size: rows,
});

export async function tokenizers({ tabtune, work, fail }) {
  await installNode();
  const asked = [...TEXTS, ...texts()].slice(0, COUNT);
  const found = [];
  for (const [at, [name, kind]] of Object.entries(FOLDERS).entries()) {
    const [folder, path] = [join(work, `folder-${at}`), join(work, `${at}.gguf`)];
    mkdirSync(folder);
    const rows = (kind.pieces ? BASES.pieces : BASES.bytes).tokens.length;
    const [document, settings] = documents(kind);
    const put = (file, value) => writeFileSync(join(folder, file), JSON.stringify(value));
    put('config.json', config(rows));
    put('tokenizer.json', document);
    put('tokenizer_config.json', settings);
    writeFileSync(join(folder, 'model.safetensors'), weights(rows));
    const refused = await tabtune.convert(folder, path, '--format', 'gguf').then(
      () => undefined,
      (error) => String(error.message),
    );
    const ids = refused ? [] : await Promise.all(asked.map((text) => tabtune.ids(folder, text)));
    if (refused && !refused.includes('export.gguf.tokenizer')) fail(`${name}: ${refused}`);
    const part =
      ['pre_tokenizer', 'normalizer', 'post_processor', 'added_tokens', 'model'].find((word) =>
        refused?.includes(word),
      ) ?? 'its kind';
    found.push({ name, path, ids, refused, part, kind });
  }
  const written = found.filter(({ refused }) => !refused);
  const theirs = await readsVocabularies(
    work,
    written.map(({ path }) => ({ path, texts: asked })),
  );
  const rows = found.map(({ name, ids, part, refused, kind }) => {
    if (refused) return [name, 'refused', part];
    const read = theirs[written.findIndex((one) => one.name === name)];
    if (read.refused) {
      fail(`${name}: llama.cpp refuses the file`);
      return [name, 'not read', ''];
    }
    // Composed texts: the export says that others differ.
    const counted = [...asked.keys()].filter(
      (at) => !kind.normalizer || kind.pieces || asked[at] === asked[at].normalize('NFC'),
    );
    const equal = counted.filter((at) => String(read.ids[at]) === String(ids[at]));
    for (const at of counted.filter((at) => !equal.includes(at)))
      fail(
        `${name}: ids of ${JSON.stringify(asked[at])}: llama.cpp ${read.ids[at]}, tabtune ${ids[at]}`,
      );
    return [name, `${equal.length} of ${counted.length}`, ''];
  });
  return {
    title: 'tokenizers of folders, exported as GGUF',
    words: `${rows.length} folders whose documents have rules of published tokenizers, or rules that no word of llama.cpp has, with vocabularies whose
      tokens cross every border. The texts to which llama.cpp gives the ids that the folder gives them (where a document composes characters, of those
      that are composed, since the export says that others differ), or the part of the document for which the export is refused.`,
    columns: ['folder', 'ids', 'refused for'],
    rows,
  };
}
