/** The warnings about a model's files, below their field. */
import type { Model } from 'tabtune';

import { byId, make } from '../dom.js';
import { grouped } from '../format.js';
import { showSentence } from '../words.js';

/** Number of findings shown for a model's files. */
const FINDINGS = 6;

/** Shows warnings about the model's files. */
export function showFindings(warnings: Model['warnings']): void {
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
