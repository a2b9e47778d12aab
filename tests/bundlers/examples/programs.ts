// The programs of examples/ that are no components, and the package that they import, for the page's trials.
import { LoggerWithoutDebug, Wllama } from '@wllama/wllama';
import wasm from '@wllama/wllama/esm/wasm/wllama.wasm?url';
import * as tabtune from 'tabtune';
import * as classify from './examples/classify-by-label-words';
import * as compare from './examples/compare-before-and-after';
import * as resumed from './examples/continue-tomorrow';
import * as chats from './examples/fine-tune-on-chats';
import * as hosted from './examples/host-the-wasm-elsewhere';
import * as hidden from './examples/private-data/train';
import * as exported from './examples/run-it-elsewhere';
import * as terminal from './examples/take-it-to-the-terminal';

/** Lets wllama continue a text with the model in a GGUF file. */
async function complete(gguf: Blob, prompt: string): Promise<string> {
  const wllama = new Wllama({ default: wasm }, { logger: LoggerWithoutDebug });
  await wllama.loadModel([gguf], { n_ctx: 64, n_threads: 1, n_gpu_layers: 0 });
  const { choices } = await wllama.createCompletion({ prompt, max_tokens: 5, temperature: 0 });
  await wllama.exit();
  return choices[0]?.text ?? '';
}

const all = [classify, compare, resumed, chats, hosted, hidden, exported, terminal];
Object.assign(globalThis, { examples: Object.assign({ tabtune, complete }, ...all) });
