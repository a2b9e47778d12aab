// Golden GGUF files with a change: a head that is stored twice, another name, a vocabulary of pieces.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../web/toolchain.mjs';
import {
  ofF32s,
  ofI32s,
  ofText,
  ofTexts,
  ofTruth,
  ofU32,
  taken,
  together,
} from '../torture/gguf.mjs';

const golden = (name) => readFileSync(join(root, 'tests', 'golden', name));

/** Returns a GGUF file's tensors with their bytes. */
function opened(bytes) {
  const { metadata, tensors } = taken(bytes);
  return {
    metadata,
    tensors: tensors.map((tensor) => ({
      ...tensor,
      bytes: bytes.subarray(tensor.begin, tensor.end),
    })),
  };
}

/** Returns the golden Qwen2 with its tied head stored a second time. */
export function doubled() {
  const { metadata, tensors } = opened(golden('models/qwen2.gguf'));
  return together(metadata, [
    ...tensors,
    { ...tensors.find(({ name }) => name === 'token_embd.weight'), name: 'output.weight' },
  ]);
}

/** Returns the golden Llama with another name of the same length: another header, the same weights. */
export function renamed() {
  const { metadata, tensors } = opened(golden('models/llama3.gguf'));
  return together(new Map([...metadata, ['general.name', ofText('tiny other')]]), tensors);
}

/** Returns the golden Llama with a SentencePiece vocabulary, and tables of as many rows. */
export function sentencePiece() {
  const { tokens, scores, types } = JSON.parse(String(golden('tokenizers.json'))).sentence_piece;
  const { metadata, tensors } = opened(golden('models/llama3.gguf'));
  const kept = [...metadata].filter(
    ([key]) => !key.startsWith('tokenizer.') && key !== 'llama.vocab_size',
  );
  const words = {
    'llama.vocab_size': ofU32(tokens.length),
    'tokenizer.ggml.model': ofText('llama'),
    'tokenizer.ggml.tokens': ofTexts(tokens),
    'tokenizer.ggml.scores': ofF32s(scores),
    'tokenizer.ggml.token_type': ofI32s(types),
    'tokenizer.ggml.bos_token_id': ofU32(1),
    'tokenizer.ggml.eos_token_id': ofU32(2),
    'tokenizer.ggml.unknown_token_id': ofU32(0),
    'tokenizer.ggml.add_space_prefix': ofTruth(true),
  };
  const grown = tensors.map((tensor) => {
    if (tensor.name !== 'token_embd.weight' && tensor.name !== 'output.weight') return tensor;
    const width = tensor.dims[0];
    return {
      ...tensor,
      dims: [width, tokens.length],
      bytes: Buffer.from(
        Float32Array.from({ length: width * tokens.length }, (_, at) => ((at * 37) % 101) / 400)
          .buffer,
      ),
    };
  });
  return together(new Map([...kept, ...Object.entries(words)]), grown);
}
