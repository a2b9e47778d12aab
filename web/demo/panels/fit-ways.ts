/** The ways to need less memory, each with its planned bytes: loaded when a run does not fit. */
import { html, nothing, render } from 'lit-html';
import { Trainer } from 'tabtune';
import type { Model, TrainOptions } from 'tabtune';

import { setAdvanced } from '../advanced.js';
import { byId, check } from '../dom.js';
import { bytes } from '../format.js';
import { waysOf } from '../lighter.js';
import type { Way } from '../lighter.js';
import { isNumber, setNumber } from '../numbers.js';
import type { Trained } from '../optimizers.js';
import { trainOptions } from '../settings.js';

interface Planned extends Way {
  need: number;
}

/** Returns the first of several ways that fits, or else the last; undefined if none can be planned. */
async function leastChange(
  model: Model,
  ways: readonly Way[],
  limit: number,
): Promise<Planned | undefined> {
  let found: Planned | undefined;
  for (const way of ways) {
    const need = await Trainer.estimate(model, way.options).then(
      ({ needBytes }) => needBytes,
      () => undefined,
    );
    if (need === undefined) continue;
    found = { ...way, need };
    if (need <= limit) break;
  }
  return found;
}

/** Returns the ways that need less than `needBytes`: of each kind the least change that is within the limit. */
export async function findWays(
  model: Model,
  options: TrainOptions,
  trained: Trained,
  { needBytes, limit }: { needBytes: number; limit: number },
): Promise<Planned[]> {
  const ways: Planned[] = [];
  for (const kind of waysOf(options, trained, trainOptions('adapter'))) {
    const found = await leastChange(model, kind, limit);
    if (found && found.need < needBytes) ways.push(found);
  }
  return ways;
}

/** Changes the form, and plans again. */
function apply({ numbers = {}, advanced = {}, rule, trained }: Way): void {
  for (const [id, value] of Object.entries(numbers)) if (isNumber(id)) setNumber(id, String(value));
  for (const [path, value] of Object.entries(advanced)) setAdvanced(path, value);
  if (rule !== undefined) byId('s-optimizer', HTMLSelectElement).value = rule;
  if (trained) check('trained', trained);
  byId('numbers', HTMLElement).dispatchEvent(new Event('input'));
}

/** Draws the reason and the ways; `anyway` starts the run as it is, where that is a choice. */
export function drawWays(
  place: HTMLElement,
  {
    why,
    ways,
    anyway,
  }: { why: string; ways: readonly Planned[]; anyway: (() => void) | undefined },
): void {
  render(
    html`<p class="fault" id="fit-said" role="alert">
        ${why} ${ways.length > 0 ? 'These ways need less:' : 'A smaller model needs less.'}
      </p>
      <div class="acts">
        ${ways.map(
          (way) =>
            html`<button type="button" @click=${() => apply(way)}>
              ${way.text}: about ${bytes(way.need)}
            </button>`,
        )}
        ${
          anyway
            ? html`<button type="button" id="fit-anyway" @click=${anyway}>Train as it is</button>`
            : nothing
        }
      </div>`,
    place,
  );
}
