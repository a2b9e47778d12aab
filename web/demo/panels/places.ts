/** The places that a trained model can go to: the file that each takes, and what is typed there. */
import type { CheckpointInfo, ExportFormat, ModelDetails, SessionInfo, Trainer } from 'tabtune';

import { exportName } from '../names.js';

/** The run that is open. */
export interface Taken {
  trainer: Trainer;
  /** Name of the run. */
  label: string;
  /** True if only its checkpoints are left. */
  lost: boolean;
}
/** The same, with what is known of its files. */
export interface Shown extends Taken {
  /** Beginning of the names of all files. */
  stem: string;
  details: ModelDetails | undefined;
  info: SessionInfo | undefined;
  /** The newest checkpoint. */
  newest: CheckpointInfo | undefined;
}

/** Names that commands contain. */
export interface Named {
  /** Beginning of the names of all files. */
  stem: string;
  /** Name of the model that an adapter was trained on; empty for all other runs, as is its file or repository. */
  base: string;
  baseFile: string;
  /** File of the run's data. */
  data: string;
  /** Options with which a run that is at its end has more steps; empty for all other runs. */
  more: string;
  /** Name of the checkpoint's file. */
  checkpoint: string;
}

export interface Place {
  id: string;
  title: string;
  about: string;
  /** Format of its file; a place without one takes the checkpoint of the run. */
  format?: ExportFormat;
  /** Only runs that train an adapter have it. */
  ofAdapter?: boolean;
  /** The commands or lines that are typed there, in parts that are copied one by one. */
  typed: (named: Named) => readonly string[];
  /** A step that is not typed. */
  also?: (named: Named) => string;
}

const lines = (...all: string[]): string => all.join('\n');
const gguf = ({ stem }: Named): string => exportName(stem, 'gguf');

/** Maximum size of a file that wllama loads. */
export const WLLAMA_BYTES = 2_000_000_000;

/** Number of steps that a run gets in addition, if it is at its end. */
const MORE = 100;

export const PLACES: readonly Place[] = [
  {
    id: 'ollama',
    title: 'Ollama',
    about: 'Runs the model on your own computer, in a terminal or for other programs.',
    format: 'gguf',
    also: () => 'Put both files into one folder, open a terminal there, and type:',
    typed: ({ stem }) => [lines(`ollama create ${stem} -f Modelfile`, `ollama run ${stem}`)],
  },
  {
    id: 'lmstudio',
    title: 'LM Studio',
    about: 'Runs the model on your own computer, in a window.',
    format: 'gguf',
    also: () => 'After this command, LM Studio lists it among your models:',
    typed: (named) => [`lms import ${gguf(named)}`],
  },
  {
    id: 'llama-cpp',
    title: 'llama.cpp',
    about: 'Runs the model from the command line, or serves it to other programs.',
    format: 'gguf',
    typed: (named) => [`llama-cli -m ${gguf(named)}`, `llama-server -m ${gguf(named)}`],
  },
  {
    id: 'wllama',
    title: 'wllama',
    about: 'Runs the model in a page of your own, without a server that computes.',
    format: 'gguf',
    also: () => 'The paths are those of wllama’s own .wasm files:',
    typed: (named) => [
      lines(
        `const blob = await (await fetch('${gguf(named)}')).blob();`,
        'const wllama = new Wllama(paths);',
        'await wllama.loadModel([blob]);',
      ),
    ],
  },
  {
    id: 'transformers',
    title: 'transformers',
    about: 'Loads the model in Python, as a folder in a zip.',
    format: 'safetensors',
    typed: ({ stem }) => [
      `unzip ${stem}.zip -d ${stem}`,
      lines(
        'from transformers import pipeline',
        `print(pipeline('text-generation', '${stem}')('Hello'))`,
      ),
    ],
  },
  {
    id: 'peft',
    title: 'PEFT',
    about: 'Loads the adapter alone in Python, on top of the model that it was trained on.',
    format: 'peft',
    ofAdapter: true,
    typed: ({ stem, base }) => [
      `unzip ${stem}-adapter.zip -d ${stem}-adapter`,
      lines(
        'from peft import PeftModel; from transformers import AutoModelForCausalLM',
        `model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained('${base}'), '${stem}-adapter')`,
      ),
    ],
  },
  {
    id: 'adapter',
    title: 'llama.cpp, the adapter alone',
    about: 'Adds the adapter to the GGUF file of the model that it was trained on.',
    format: 'gguf-adapter',
    ofAdapter: true,
    typed: ({ stem, baseFile }) => [
      `llama-cli -m ${baseFile.endsWith('.gguf') ? baseFile : 'BASE.gguf'} --lora ${exportName(stem, 'gguf-adapter')}`,
    ],
  },
  {
    id: 'terminal',
    title: 'Continue in a terminal',
    about: 'Trains the same run further without a browser, from exactly where it is.',
    also: ({ more }) =>
      `${more && `The run is at its end: this adds ${MORE} steps. `}The data are the same file as here:`,
    typed: ({ checkpoint, data, baseFile, stem, more }) => [
      `tabtune train --resume ${checkpoint} --data ${data}${baseFile && ` --model ${baseFile}`} --to ${stem}${more}`,
    ],
  },
  {
    id: 'browser',
    title: 'Continue in another browser',
    about: 'Trains the same run further on another device, from exactly where it is.',
    also: () => 'Open this page there, and import the file below “Runs on this device”.',
    typed: () => [],
  },
];

/** Returns a word of a command for a shell. */
const shellWord = (text: string): string =>
  /^[\w.:@/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

export function namedOf({ stem, details, info, newest, trainer, lost }: Shown): Named {
  const base = info?.adapter ? details?.base : undefined;
  const repo = base?.hub?.repo;
  const file = base?.files[0]?.name ?? '';
  const baseFile = base?.format === 'gguf' ? file : 'MODEL-FOLDER';
  const step = (lost ? newest?.step : trainer.completedSteps) ?? 0;
  const total = info?.totalSteps ?? newest?.totalSteps ?? Infinity;
  return {
    stem,
    base: (repo ?? base?.name ?? file).replaceAll("'", ''),
    baseFile: base ? shellWord(repo === undefined ? baseFile : `hf:${repo}`) : '',
    data: shellWord(newest?.dataName || 'DATA'),
    more: step < total ? '' : ` --steps +${MORE} --override steps schedule.total_steps`,
    checkpoint: `${stem}-step-${step}.tabtune`,
  };
}
