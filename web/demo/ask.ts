/** A question in plain words, with a button for each answer. */
import { escaped } from 'tabtune';

import { byId, make } from './dom.js';
import { grouped } from './format.js';

/** Asks a question; returns the chosen answer, or `undefined` if the dialog was closed. The first answer is the recommended one. */
export function ask<T extends string>(
  title: string,
  words: string,
  answers: Readonly<Record<T, string>>,
): Promise<T | undefined> {
  return asked<T>(title, words, (give) =>
    Object.keys(answers).map((key, index) => {
      const answer = key as T;
      const button = make('button', answers[answer], index === 0 ? 'primary' : '');
      button.addEventListener('click', () => give(answer));
      return button;
    }),
  );
}

/** Asks a question whose `choices` return an answer and thereby close the dialog. */
function asked<T>(
  title: string,
  words: string,
  choices: (give: (answer: T) => void) => HTMLElement[],
): Promise<T | undefined> {
  const dialog = byId('ask', HTMLDialogElement);
  byId('ask-title', HTMLElement).textContent = escaped(title);
  byId('ask-words', HTMLElement).textContent = escaped(words);
  const given: { answer?: T } = {};
  const give = (answer: T): void => {
    given.answer = answer;
    dialog.close();
  };
  byId('ask-choices', HTMLFormElement).replaceChildren(...choices(give), make('button', 'Cancel'));
  dialog.showModal();
  return new Promise((resolve) =>
    dialog.addEventListener('close', () => resolve(given.answer), { once: true }),
  );
}

/** Asks for files; returns the chosen ones, or `undefined` if the dialog was closed. */
export function askForFiles(title: string, words: string): Promise<File[] | undefined> {
  const input = make('input');
  Object.assign(input, { type: 'file', id: 'ask-files', multiple: true });
  const choose = make('label', 'Choose the files', 'file');
  choose.append(input);
  return asked<File[]>(title, words, (give) => {
    input.addEventListener('change', () => give([...(input.files ?? [])]));
    return [choose];
  });
}

/** Asks before a running run, or steps that are in no checkpoint, are discarded. */
export function askToEnd(going: boolean, unsaved: number): Promise<'save' | 'discard' | undefined> {
  const begin = going ? 'A run is in progress, and it would end here. ' : '';
  if (unsaved === 0)
    return ask('End this run?', `${begin}All its steps are saved.`, { discard: 'End it' });
  const steps = unsaved === 1 ? 'The last step is' : `The last ${grouped(unsaved)} steps are`;
  return ask('End this run?', `${begin}${steps} not saved yet.`, {
    save: 'Save, then end it',
    discard: unsaved === 1 ? 'Discard it' : 'Discard them',
  });
}
