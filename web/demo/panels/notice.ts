import { support } from 'tabtune';
import type { Support } from 'tabtune';

import { byId, make } from '../dom.js';

/** Shows why this browser cannot train, and what to do; or that it will be slow. */
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
  } else if (found.adapter?.software === true) {
    box.className = 'notice plain';
    box.setAttribute('role', 'note');
    box.replaceChildren(
      make(
        'p',
        'There is no graphics card here, so the browser computes in software. Everything works, only slower; the built-in model is smaller for that.',
      ),
    );
    box.hidden = false;
  }
  return found;
}
