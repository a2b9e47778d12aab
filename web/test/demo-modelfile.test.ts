/** The Modelfile that the demo offers: its template in Go's language writes what the model's own writes. */
import { describe, expect, it } from 'vitest';

import { chatTurns, goTemplate, stopsOf, written } from '../demo/chat-turns.js';
import type { Asked, Said } from '../demo/chat-turns.js';
import { modelfile } from '../demo/modelfile.js';
import { renderGo } from './go-template.js';

const user = (content: string): Said => ({ role: 'user', content });
const assistant = (content: string): Said => ({ role: 'assistant', content });
const CONVERSATIONS: Said[][] = [
  [user('Hello "you" {there}')],
  [user('One?'), assistant('1'), user('Two?'), assistant('2\n'), user('Three?')],
  [{ role: 'system', content: 'Speak\nshortly.' }, user('A'), assistant('B'), user('C')],
];

/** A chat template as it is published, written out: the text of messages, with the answer opened. */
type Template = (said: readonly Said[], open: boolean) => string;
const split = (said: readonly Said[]): { system: string; turns: readonly Said[] } => ({
  system: said[0]?.role === 'system' ? said[0].content : '',
  turns: said.filter(({ role }) => role !== 'system'),
});
const chatml: Template = (said, open) =>
  said.map(({ role, content }) => `<|im_start|>${role}\n${content}<|im_end|>\n`).join('') +
  (open ? '<|im_start|>assistant\n' : '');
const TEMPLATES: Record<string, Template> = {
  ChatML: chatml,
  'ChatML with a system message of its own': (said, open) =>
    chatml(
      said[0]?.role === 'system'
        ? said
        : [{ role: 'system', content: 'You are a helpful assistant.' }, ...said],
      open,
    ),
  'Llama 3': (said, open) =>
    [...said, ...(open ? [assistant('')] : [])]
      .map(
        ({ role, content }, at) =>
          `<|start_header_id|>${role}<|end_header_id|>\n\n${content}${open && at === said.length ? '' : '<|eot_id|>'}`,
      )
      .join(''),
  Zephyr: (said, open) =>
    said.map(({ role, content }) => `<|${role}|>\n${content}</s>\n`).join('') +
    (open ? '<|assistant|>\n' : ''),
  'Gemma 3': (said, open) => {
    const { system, turns } = split(said);
    const lead = system && `${system}\n\n`;
    return (
      turns
        .map(
          ({ role, content }, at) =>
            `<start_of_turn>${role === 'user' ? 'user' : 'model'}\n${at === 0 ? lead : ''}${content}<end_of_turn>\n`,
        )
        .join('') + (open ? '<start_of_turn>model\n' : '')
    );
  },
  'Mistral 0.3': (said) => {
    const { system, turns } = split(said);
    return turns
      .map(({ role, content }, at) => {
        if (role === 'assistant') return ` ${content}</s>`;
        const lead = at === turns.length - 1 && system ? `${system}\n\n` : '';
        return `[INST] ${lead}${content}[/INST]`;
      })
      .join('');
  },
};
const STOPS: Record<string, string> = {
  'Llama 3': '<|eot_id|>',
  Zephyr: '</s>',
  'Gemma 3': '<end_of_turn>',
  'Mistral 0.3': '</s>',
};

/** Weights whose tokens are characters, and whose texts begin with token 0. */
const asked = (template: Template, read = (text: string): string => text): Asked => ({
  score: (given, options) => {
    const text =
      typeof given === 'string'
        ? read(given)
        : template(given as readonly Said[], options?.generation === true);
    const ids = [0, ...Array.from(text, (letter) => letter.codePointAt(0) ?? 0)];
    return Promise.resolve({ tokens: ids.map((id) => ({ id, text: '', top: [] })), warnings: [] });
  },
  detokenize: (ids) => Promise.resolve(String.fromCodePoint(...ids)),
});

describe.each(Object.entries(TEMPLATES))('a template of %s', (name, template) => {
  it('writes_the_same_in_Go', async () => {
    const turns = await chatTurns(asked(template));
    const go = turns && goTemplate(turns);
    for (const said of CONVERSATIONS) {
      expect(renderGo(go ?? '', said)).toBe(template(said, true));
      expect(turns && written(turns, said)).toBe(template(said, true));
    }
    expect(stopsOf(turns, ['<eos>'])).toEqual(['<eos>', STOPS[name] ?? '<|im_end|>']);
  });
});

it('without_system_messages_says_so', async () => {
  const refusing: Template = (said, open) => {
    if (said[0]?.role === 'system') throw new Error('no system');
    return chatml(said, open);
  };
  const turns = await chatTurns(asked(refusing));
  expect(turns && goTemplate(turns)).not.toMatch(/System/);
  expect(made({ turns })).toContain('# It takes no system message.\nTEMPLATE """');
});

it.each<[string, Template, ((text: string) => string)?]>([
  ['the_date', (said, open) => `${new Date().toISOString()}\n${chatml(said, open)}`],
  ['the_number_of_messages', (said, open) => `${said.length}\n${chatml(said, open)}`],
  ['only_the_last_message', (said, open) => chatml(said.slice(-1), open)],
  ['marks_that_a_reader_of_its_text_does_not_find', chatml, (text) => text.replace('<|', '< |')],
  ['braces_of_Go', (said, open) => chatml(said, open).replaceAll('<|', '{{')],
])('leaves_out_a_template_that_writes_%s', async (_, template, read) => {
  const turns = await chatTurns(asked(template, read));
  expect(made({ turns })).not.toMatch(/^TEMPLATE/m);
  expect(made({ turns })).toMatch(/^# Without a TEMPLATE, Ollama looks/m);
});

/** Returns a Modelfile. */
const made = (more: Partial<Parameters<typeof modelfile>[0]>): string =>
  modelfile({
    file: 'mine.gguf',
    temperature: 0.7,
    system: '',
    stops: ['<|im_end|>'],
    chats: true,
    turns: undefined,
    ...more,
  });

it('names_the_file_the_stops_the_temperature_and_the_system_message', () => {
  const lines = made({ system: 'Be\nbrief.', stops: ['</s>', 'a"b'] }).split('\n');
  expect(lines[0]).toBe('FROM ./mine.gguf');
  expect(lines.slice(2)).toEqual([
    'PARAMETER stop "</s>"',
    'PARAMETER stop """a"b"""',
    'PARAMETER temperature 0.7',
    'SYSTEM """Be',
    'brief."""',
    '',
  ]);
  expect(() => made({ system: 'a """ b' })).toThrow(/three quotation marks/);
});

it('continues_prompts_of_a_model_without_a_chat_template', () => {
  expect(made({ chats: false, stops: [] })).toBe(
    'FROM ./mine.gguf\n# The model has no chat template: it continues the prompt.\nTEMPLATE "{{ .Prompt }}"\nPARAMETER temperature 0.7\n',
  );
});
