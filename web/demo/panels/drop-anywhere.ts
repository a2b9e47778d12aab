/** Files that are dropped anywhere on the page go to where they belong; a line says where they went, and while they are dragged, where they will go. */
import { escaped } from 'tabtune';

import { sorted } from '../belongs.js';
import { byId, nextRun } from '../dom.js';
import { onDrag, onDrop } from '../drop.js';
import type { Take } from '../drop.js';
import { counted } from '../format.js';
import { goTo } from '../path.js';

/** Number of files that are named. */
const NAMED = 3;
const HINTS: Readonly<Record<string, string>> = {
  'drop-model': 'Drop to choose this as the model.',
  'drop-data': 'Drop to choose this as the data.',
  'drop-inspect': 'Drop to see what is in it.',
  'drop-checkpoint': 'Drop to import it as a saved run.',
};
const ANYWHERE =
  'Drop it anywhere: files of a model become the model, texts and rows the data, and .tabtune files are imported.';

const namesOf = (files: readonly File[]): string =>
  files.length > NAMED
    ? counted(files.length, 'file')
    : files.map(({ name }) => escaped(name)).join(', ');

export function takeAnywhere(
  takes: Readonly<Record<'model' | 'data' | 'runs', Take>>,
  fail: (thrown: unknown) => void,
): void {
  const hint = byId('drop-hint', HTMLElement);
  const said = byId('drop-said', HTMLElement);
  onDrag((target) => {
    hint.hidden = target === undefined;
    if (target) hint.textContent = HINTS[target.id] ?? ANYWHERE;
  });
  const take = async (files: File[], notRead: string, folder = ''): Promise<void> => {
    const sorts = sorted(files, folder !== '');
    const foreign: string[] = [];
    const { kindOf } = await import('../file-kinds.js');
    for (const file of sorts.unknown) {
      const kind = await kindOf(file);
      if (kind) foreign.push(`${escaped(file.name)} is ${kind.is}: ${kind.advice}.`);
      // A model's repository may have programs, which are texts.
      else (sorts.model.length > 0 ? sorts.left : sorts.data).push(file);
    }
    const { model, data, runs, left } = sorts;
    const parts: string[] = [];
    if (model.length > 0)
      parts.push(`Chosen as the model: ${folder === '' ? namesOf(model) : escaped(folder)}.`);
    if (data.length > 0) parts.push(`Chosen as the data: ${namesOf(data)}.`);
    if (runs.length > 0) parts.push(`Imported as a saved run: ${namesOf(runs)}.`);
    if (left.length > 0) parts.push(`Not used: ${namesOf(left)}.`);
    said.textContent = [...parts, ...foreign, notRead].filter(Boolean).join(' ');
    said.hidden = said.textContent === '';
    if (model.length > 0) takes.model(model, '', folder);
    if (data.length > 0) takes.data(data, '');
    if (runs.length > 0) takes.runs(runs, '');
    if (runs.length > 0 && model.length + data.length === 0)
      byId('kept-title', HTMLElement).scrollIntoView();
    else goTo(data.length > 0 && model.length === 0 ? 'data' : 'model');
  };
  onDrop(document.documentElement, (...taken) => void take(...taken).catch(fail), fail);
  // The line is about the drop alone: what is chosen afterwards is seen in the form.
  for (const part of nextRun()) part.addEventListener('input', () => (said.hidden = true));
  byId('start', HTMLButtonElement).addEventListener('click', () => (said.hidden = true));
}
