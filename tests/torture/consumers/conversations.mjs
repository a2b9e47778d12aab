// Answers of models with chat templates: the ids with which llama.cpp continues the text that Jinja2 renders, compared with `tabtune chat`.
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../../web/toolchain.mjs';
import { installNode } from './install.mjs';
import { runs } from './programs.mjs';

const GOLDEN = join(root, 'tests', 'golden');
/** Templates of golden/chats.json, and the three special tokens of their models: the last one ends a turn. */
const TEMPLATES = {
  chatml: ['<|endoftext|>', '<|im_start|>', '<|im_end|>'],
  instructions: ['<unk>', '<s>', '</s>'],
  turns: ['<s>', '<start_of_turn>', '<end_of_turn>'],
};
const TOKENS = 24;

const PLACES = [
  'Rome',
  'Oslo',
  'Cairo',
  'Lima',
  'Delhi',
  'Paris',
  'Tokyo',
  'Quito',
  'Berlin',
  'Accra',
];
const ASKED = ['Hi', 'x b', '2+2', 'Is it far?', 'a bad apple'];
const ROWS = PLACES.flatMap((place) =>
  ASKED.map((content) => ({
    messages: [
      { role: 'user', content: `${content} ${place}` },
      { role: 'assistant', content: `To ${place}.` },
    ],
  })),
);

/** Trains a model of bytes to answer by a template; returns it as a GGUF file, and its folder. */
async function talking(tabtune, work, template, { templates, specials }) {
  const [folder, run, path] = [template, `${template}-run`, `${template}.gguf`].map((name) =>
    join(work, name),
  );
  cpSync(join(GOLDEN, 'inputs', 'forms', 'model'), folder, { recursive: true });
  const tokenizer = JSON.parse(readFileSync(join(folder, 'tokenizer.json'), 'utf8'));
  tokenizer.added_tokens.forEach((token, at) => (token.content = TEMPLATES[template][at]));
  const [, , end] = TEMPLATES[template];
  const write = (name, text) => writeFileSync(join(folder, name), text);
  write('tokenizer.json', JSON.stringify(tokenizer));
  write(
    'tokenizer_config.json',
    JSON.stringify({ ...specials, eos_token: end, tokenizer_class: 'PreTrainedTokenizerFast' }),
  );
  write('chat_template.jinja', templates[template]);
  write('rows.jsonl', ROWS.map((row) => JSON.stringify(row)).join('\n'));
  const shape = [
    '--batch-size',
    '8',
    '--steps',
    '150',
    '--learning-rate',
    '0.02',
    '--seed',
    '3',
    '--validation-fraction',
    '0',
    '--device',
    'cpu',
  ];
  await tabtune.lines(
    'train',
    '--model',
    folder,
    '--data',
    join(folder, 'rows.jsonl'),
    ...shape,
    '--out',
    run,
  );
  await tabtune.lines(
    'export',
    '--checkpoint',
    run,
    '--to',
    path,
    '--format',
    'gguf',
    '--type',
    'f32',
  );
  return path;
}

/** Returns the questions of the golden chats that end with a user. */
const questions = ({ chats }) =>
  Object.entries(chats).filter(
    ([, messages]) => messages.length === 1 && Object.keys(messages[0]).length === 2,
  );

export async function conversations({ tabtune, work, fail }) {
  await installNode();
  const golden = JSON.parse(readFileSync(join(GOLDEN, 'chats.json'), 'utf8'));
  const rows = [];
  for (const template of Object.keys(TEMPLATES)) {
    const path = await talking(tabtune, work, template, golden);
    let [equal, ended, asked] = [0, 0, 0];
    for (const [chat, [{ content }]] of questions(golden)) {
      const { text } = golden.cases.find(
        (each) => each.template === template && each.chat === chat && each.add_generation_prompt,
      );
      // The golden text and similar ones: the output of Jinja2, with another question inserted.
      for (const question of [
        content,
        ...ASKED.map((said) => `${said} ${PLACES[asked % PLACES.length]}`),
      ]) {
        asked += 1;
        const prompt = text.replace(content, question);
        const options = [
          '--message',
          question,
          '--temperature',
          '0',
          '--max-tokens',
          String(TOKENS),
          '--device',
          'cpu',
        ];
        const lines = await tabtune.lines('chat', '--model', path, ...options);
        const ours = lines.filter(({ token }) => token).map(({ token }) => token.id);
        const [
          {
            answers: [theirs],
          },
        ] = await runs(work, [{ path, answers: [{ text: prompt, tokens: TOKENS }] }]);
        if (String(ours) === String(theirs.ids)) equal += 1;
        else
          fail(
            `conversations: ${template}, ${JSON.stringify(question)}: llama.cpp answers ${theirs.ids}, tabtune ${ours}`,
          );
        if (theirs.ended) ended += 1;
        const {
          prompt_tokens: { computed },
          end,
        } = lines.find(({ answer }) => answer !== undefined);
        if (computed !== theirs.prompt)
          fail(
            `conversations: ${template}: a prompt of ${theirs.prompt} tokens, tabtune ${computed}`,
          );
        if ((end === 'stop') !== theirs.ended)
          fail(
            `conversations: ${template}: llama.cpp ${theirs.ended ? 'ends' : 'goes on'}, tabtune says ${end}`,
          );
      }
    }
    if (ended === 0) fail(`conversations: ${template}: no answer ended`);
    rows.push([template, `${asked}`, `${equal}`, `${ended}`]);
  }
  return {
    title: 'answers in conversations',
    words: `A model of bytes learns 50 conversations in each of three chat templates and leaves as GGUF, f32. llama.cpp takes the text that Jinja2 rendered and continues with its likeliest token until one
ends the answer, at most ${TOKENS}; \`tabtune chat\` gets the messages.`,
    columns: ['template', 'questions', 'answers of equal ids', 'ended by themselves'],
    rows,
  };
}
