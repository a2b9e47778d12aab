// Exports a trained model for the programs that people run models with. Each function returns the
// files, and its comment has the commands; `download` hands a file to the user.
import type { Model, Trainer } from 'tabtune';

/**
 * One file for llama.cpp and what is built on it.
 *
 *     llama-cli -m mine.gguf                          # llama.cpp
 *     lms import mine.gguf                            # LM Studio, which then lists it
 *
 * In a page, wllama takes the Blob itself: `await new Wllama(paths).loadModel([blob])`.
 */
export const forLlamaCpp = (trained: Trainer | Model): Promise<Blob> =>
  trained.export({ format: 'gguf', type: 'q8_0', name: 'mine' });

/**
 * For Ollama the same file, and a Modelfile in the same folder.
 *
 *     ollama create mine -f Modelfile
 *     ollama run mine
 *
 * Ollama finds the chat template in the GGUF file, if it knows it; a `TEMPLATE` in the Modelfile
 * replaces it. An adapter alone is `FROM` the GGUF file that it was trained on, and
 * `ADAPTER ./mine.gguf`, the file of `export({ format: 'gguf-adapter' })`.
 */
export async function forOllama(trained: Trainer | Model, system: string): Promise<Blob[]> {
  const modelfile = `FROM ./mine.gguf\nPARAMETER temperature 0.7\nSYSTEM """${system}"""\n`;
  return [await forLlamaCpp(trained), new Blob([modelfile], { type: 'text/plain' })];
}

/**
 * A zip of config.json, model.safetensors and the tokenizer, for Python's transformers.
 *
 *     unzip mine.zip -d mine
 *     python -c "from transformers import pipeline; print(pipeline('text-generation', 'mine')('Hello'))"
 *
 * `format: 'peft'` is the folder of an adapter: `PeftModel.from_pretrained(base, 'mine')`.
 */
export const forTransformers = (trained: Trainer | Model): Promise<Blob> =>
  trained.export({ format: 'safetensors', dtype: 'bf16' });

/** Offers a file as a download. */
export function download(blob: Blob, name: string): void {
  const href = URL.createObjectURL(blob);
  Object.assign(document.createElement('a'), { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
