// npm run lab -- NAME [argument …]: proofs and measurements that take long or install other programs, which `npm test` leaves out. Without a name
// they are listed.
import { spawn } from 'node:child_process';
import { join } from 'node:path';

/** Name, script and purpose of each. */
const LAB = `
torture      torture/run.mjs        Breaks browser, GPU, disk and tabs on purpose and counts what survived; "lora" tests adapters.
consumers    torture/consumers.mjs  Lets llama.cpp, gguf-py, safetensors and transformers read what tabtune writes.
chats        torture/chats.mjs      Compares what is learned from conversations with transformers, in every template of trl's wheel.
joints       torture/joints.mjs     Compares the ids of prompts with their completions with Hugging Face's tokenizers.
bundlers     bundlers/run.mjs       Trains with the packed package in projects of Vite, webpack, Rollup, Next.js and others; runs the programs of examples/.
cold         cold/run.mjs           Measures "start" or "test" on a clean clone with every cache empty.
defaults     lab/defaults.mjs       Compares the settings that a run chooses with others, on models and rows of yours.
same-bits    lab/same-bits.mjs      Compares the bits of this checkout's native runner with those of another commit's.
module-in-wasm  lab/module-in-wasm.mjs  Trains, saves and resumes the Burn module of crate/README.md in Chromium.
cuda         lab/cuda.mjs           Compares our kernels with Burn's own operations on CUDA.
bench        bench/run.mjs          Compares a training step with jax-js, TensorFlow.js and nanogpt in one browser.
screenshots  lab/screenshots.mjs    Takes README's picture of the demo again, and others to look at.
`;

const [name, ...args] = process.argv.slice(2);
const script = LAB.split('\n')
  .map((row) => row.split(/ {2,}/))
  .find(([first]) => first === name)?.[1];
if (script) {
  const child = spawn(process.execPath, [join(import.meta.dirname, '..', script), ...args], {
    stdio: 'inherit',
  });
  child.on('close', (code) => (process.exitCode = code ?? 1));
} else {
  console.log(
    `npm run lab -- NAME [argument …]; the first lines of a script in tests/ say what its arguments are\n${LAB}`,
  );
  if (name) console.error(`lab: there is no ${name}`);
  process.exitCode = name ? 1 : 0;
}
