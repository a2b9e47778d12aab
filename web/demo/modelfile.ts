/** The Modelfile with which Ollama makes a model of a GGUF file. */
import type { Turns } from './chat-turns.js';
import { goTemplate } from './chat-turns.js';

export interface Made {
  /** Name of the GGUF file, in the same folder. */
  file: string;
  temperature: number;
  /** System message; none if empty. */
  system: string;
  /** Marks that end an answer. */
  stops: readonly string[];
  /** True if the model has a chat template. */
  chats: boolean;
  /** The turns of the chat template, if they were recognised. */
  turns: Turns | undefined;
}

const QUOTES = '"""';
const quoted = (text: string): string =>
  /["\n]/.test(text) ? `${QUOTES}${text}${QUOTES}` : `"${text}"`;

/** Returns the lines about the template: the model's own in Go's language, or why there is none. */
function templateLines(chats: boolean, turns: Turns | undefined): string[] {
  // Ollama sends a prompt as it is.
  if (!chats)
    return [
      '# The model has no chat template: it continues the prompt.',
      'TEMPLATE "{{ .Prompt }}"',
    ];
  const template = turns && goTemplate(turns);
  if (turns === undefined || template === undefined)
    return [
      '# Without a TEMPLATE, Ollama looks for the chat template of the GGUF file among those that it knows.',
    ];
  return [
    '# The chat template of the model, without its tools.',
    ...(turns.system ? [] : ['# It takes no system message.']),
    `TEMPLATE ${QUOTES}${template}${QUOTES}`,
  ];
}

export function modelfile({ file, temperature, system, stops, chats, turns }: Made): string {
  if (system.includes(QUOTES))
    throw new Error(
      'A system message in a Modelfile cannot contain three quotation marks in a row.',
    );
  return [
    `FROM ./${file}`,
    ...templateLines(chats, turns),
    ...stops.map((stop) => `PARAMETER stop ${quoted(stop)}`),
    `PARAMETER temperature ${temperature}`,
    ...(system === '' ? [] : [`SYSTEM ${QUOTES}${system}${QUOTES}`]),
    '',
  ].join('\n');
}
