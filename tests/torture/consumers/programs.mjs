// Calls of the programs that write and read: jobs are passed as a JSON file, results are returned as one.
import { execFile } from 'node:child_process';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../../../web/toolchain.mjs';
import { huggingface, llamacpp, mlx, peft, python, transformers } from './install.mjs';

const HERE = join(root, 'tests', 'torture', 'consumers');
const LORA = join(root, 'tests', 'torture', 'lora');
const called = promisify(execFile);
const LARGEST_OUTPUT = 256 << 20;

/** Passes jobs through `command ...before JOBS ...after RESULTS` in the folder `work`. */
async function through(work, name, command, args, jobs) {
  const [asked, answered] = [join(work, `${name}-jobs.json`), join(work, `${name}-results.json`)];
  writeFileSync(asked, JSON.stringify(jobs));
  await called(command, [...args, asked, answered], { maxBuffer: LARGEST_OUTPUT }).catch(
    ({ stderr, message }) => {
      throw new Error(`${name}: ${stderr || message}`);
    },
  );
  return JSON.parse(readFileSync(answered, 'utf8'));
}

const script = (name) => (work, jobs) =>
  through(work, name, python, [join(HERE, `${name}.py`)], jobs);

/** Runs a forward pass in float64: forward.py. */
export const forward = script('forward');
/** Calls gguf-py: reads_gguf.py. */
export const readsGguf = script('reads_gguf');
/** Calls Python's safetensors: reads_safetensors.py. */
export const readsSafetensors = script('reads_safetensors');
/** Calls transformers: transformers_reads.py, in the Python that has torch. */
export const transformersReads = (work, command, jobs) =>
  through(work, 'transformers', command, [join(HERE, 'transformers_reads.py')], jobs);
/** Calls mlx-lm: mlx_reads.py. */
export const mlxReads = (work, jobs) =>
  through(work, 'mlx', mlx, [join(HERE, 'mlx_reads.py')], jobs);
/** Calls llama.cpp: llamacpp.mjs. */
export const runs = (work, jobs) =>
  through(work, 'llamacpp', process.execPath, [join(HERE, 'llamacpp.mjs'), llamacpp], jobs);
/** Calls llama.cpp for vocabularies alone: llamacpp-vocabularies.mjs. It ends its process at some faults, and is started again after them. */
export async function readsVocabularies(work, jobs) {
  const [asked, answered] = [
    join(work, 'vocabularies-jobs.json'),
    join(work, 'vocabularies-results.jsonl'),
  ];
  writeFileSync(asked, JSON.stringify(jobs));
  writeFileSync(answered, '');
  const lines = () => readFileSync(answered, 'utf8').split('\n').filter(Boolean);
  while (lines().length < jobs.length) {
    const call = called(process.execPath, [
      join(HERE, 'llamacpp-vocabularies.mjs'),
      llamacpp,
      asked,
      answered,
    ]);
    const ended = await call
      .then(() => undefined)
      .catch(({ signal, code }) => `llama.cpp ended its process: ${signal ?? code}`);
    if (ended && lines().length < jobs.length)
      appendFileSync(answered, `${JSON.stringify({ refused: ended })}\n`);
  }
  return lines().map((line) => JSON.parse(line));
}
/** Calls @huggingface/gguf: headers.mjs. */
export const headers = (work, jobs) =>
  through(work, 'headers', process.execPath, [join(HERE, 'headers.mjs'), huggingface], jobs);

/** Returns singular values of the difference of two models: ../lora/svd.py. */
export const svd = (work, job) => through(work, 'svd', python, [join(LORA, 'svd.py')], job);
/** Runs a base with a separate adapter, in float64: ../lora/adapted.py. */
export const adapted = (work, jobs) =>
  through(work, 'adapted', python, [join(LORA, 'adapted.py')], jobs);
/** Calls Python PEFT: ../lora/peft_reads.py, in the Python that has torch. */
export const peftReads = (work, jobs) =>
  through(work, 'peft', transformers, [join(LORA, 'peft_reads.py'), peft], jobs);

/** tabtune itself: the lines that a command prints. */
export class Tabtune {
  constructor(binary) {
    this.binary = binary;
  }

  async lines(command, ...args) {
    try {
      const { stdout } = await called(this.binary, [command, '--json', ...args], {
        maxBuffer: LARGEST_OUTPUT,
      });
      return stdout
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line));
    } catch (/** @type {any} */ error) {
      throw new Error(`tabtune ${command} ${args.join(' ')}: ${error.stdout || error.message}`);
    }
  }

  /** Converts a model or a checkpoint to a file or a folder of another format. */
  async convert(model, to, ...options) {
    await this.lines('convert', '--model', model, '--to', to, ...options);
  }

  async ids(model, text) {
    const [{ ids }] = await this.lines('tokenize', '--model', model, `--text=${text}`);
    return ids;
  }

  /** Returns the best tokens after a text, one after the other, each with the probabilities of the best five. */
  async continued(model, prompt, count) {
    const options = [
      '--max-tokens',
      String(count),
      '--temperature',
      '0',
      '--top-logprobs',
      '5',
      '--device',
      'cpu',
    ];
    return (
      await this.lines('generate', '--model', model, `--prompt=${prompt}`, ...options)
    ).filter(({ top }) => top);
  }
}
