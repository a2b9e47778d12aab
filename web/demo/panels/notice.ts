import { support } from 'tabtune';
import type { Support } from 'tabtune';

import { byId, make } from '../dom.js';

/** Shows why this browser cannot train, and what to do; or that it will be slow, or cannot save. */
export async function checkSupport(): Promise<Support> {
  const found = await support();
  const box = byId('notice', HTMLElement);
  if (!found.ok) {
    box.replaceChildren(
      make('h2', 'This browser cannot train yet'),
      make('p', found.help ?? ''),
      make('p', `Reason: ${found.code ?? 'unknown'}`, 'code'),
    );
    box.hidden = false;
    return found;
  }
  const notes = found.help === undefined ? [] : [found.help];
  if (found.adapter?.software === true)
    notes.push(
      'There is no graphics card here, so the browser computes in software. Everything works, only slower; the built-in model is smaller for that reason.',
    );
  box.className = 'notice plain';
  box.setAttribute('role', 'note');
  box.replaceChildren(...notes.map((note) => make('p', note)));
  box.hidden = notes.length === 0;
  return found;
}
