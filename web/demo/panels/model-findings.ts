/** The facts about a model and the warnings about its files, below their field. */
import { escaped } from 'tabtune';
import type { Model, ModelInfo } from 'tabtune';

import { byId, make } from '../dom.js';
import { grouped, parameters } from '../format.js';
import { showSentence } from '../words.js';

/** Number of findings shown for a model's files. */
const FINDINGS = 6;

/** Shows what the model is, and the warnings about its files. */
export function showModel(info: ModelInfo, warnings: Model['warnings']): void {
  const tokenizer = escaped(info.tokenizer?.kind ?? 'none').replaceAll('_', ' ');
  byId('model-facts', HTMLElement).textContent =
    `${escaped(info.architecture)}, ${parameters(info.parameters)} parameters in ${info.tensors.length} tensors, vocabulary ${grouped(info.vocabSize)} (${tokenizer})`;
  const list = byId('model-warnings', HTMLUListElement);
  const lines = warnings.slice(0, FINDINGS).map(({ code, message }) => {
    const line = make('li');
    showSentence(line, message, code);
    return line;
  });
  if (warnings.length > FINDINGS)
    lines.push(make('li', `and ${grouped(warnings.length - FINDINGS)} more like these`));
  list.replaceChildren(...lines);
  list.hidden = lines.length === 0;
}
