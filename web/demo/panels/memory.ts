import { Trainer } from 'tabtune';
import type { Estimate, Model } from 'tabtune';

import { byId, make } from '../dom.js';
import { bytes } from '../format.js';
import type { Trained } from '../optimizers.js';
import { trainOptions } from '../settings.js';

/** Shows the memory bar: what a run with these settings will need, by kind. */
export function showMemory({ needBytes, haveBytes, ok, parts }: Estimate): void {
  const section = byId('memory', HTMLElement);
  section.hidden = false;
  const verdict =
    ok === false
      ? `, more than half of the ${bytes((haveBytes ?? 0) * 2)} that this browser reports`
      : '';
  byId('memory-total', HTMLOutputElement).textContent = `about ${bytes(needBytes)}${verdict}`;
  const list = byId('memory-parts', HTMLElement);
  list.replaceChildren();
  for (const [kind, label] of [
    ['base', 'model, unchanged'],
    ['weights', 'weights'],
    ['adapter', 'adapter'],
    ['grads', 'gradients'],
    ['optimizer', 'optimizer'],
    ['activations', 'activations'],
  ] as const) {
    const bar = section.querySelector<HTMLElement>(`.bar .${kind}`);
    if (bar) bar.style.flexGrow = String(parts[kind] / Math.max(1, needBytes));
    if (bar) bar.hidden = parts[kind] === 0;
    if (parts[kind] === 0) continue;
    const item = make('span');
    item.append(make('i', '', kind), `${label} ${bytes(parts[kind])}`);
    list.append(item);
  }
}

/** Shows the bytes needed by both kinds of training of an opened model, before anything is allocated. */
export async function compareKinds(model: Model, trained: Trained): Promise<void> {
  if (trained === 'fresh') return;
  byId('t-numbers', HTMLElement).hidden = trained !== 'adapter';
  for (const way of ['adapter', 'all'] as const) {
    const need = await Trainer.estimate(model, trainOptions(way)).then(
      ({ needBytes }) => `about ${bytes(needBytes)}`,
      () => '',
    );
    byId(`t-${way}`, HTMLOutputElement).textContent = need;
  }
}
