/** The fields above the list of places: the type of GGUF files, and the model card. */
import { html, nothing } from 'lit-html';
import type { TemplateResult } from 'lit-html';
import { live } from 'lit-html/directives/live.js';
import type { ExportChoice } from 'tabtune';

import { byId } from '../dom.js';
import { bytes } from '../format.js';

const CARD = [
  ['name', 'Name'],
  ['license', 'License'],
  ['data', 'Training data, in words'],
] as const;

/** Returns the fields of the model card, which are those of the dialog with all formats. */
export function cardFields(): TemplateResult {
  return html`<details class="table">
    <summary>Model card</summary>
    ${CARD.map(([key, words]) => {
      const field = byId(`x-${key}`, HTMLInputElement);
      return html`<label for="take-${key}">${words}</label
        ><input
          id="take-${key}"
          autocomplete="off"
          placeholder=${field.placeholder}
          .value=${live(field.value)}
          @input=${({ target }: Event) => {
            if (target instanceof HTMLInputElement) field.value = target.value;
          }}
        />`;
    })}
  </details>`;
}

/** Returns the list of types, if there are several. */
export function typeField(
  types: readonly ExportChoice[],
  chosen: string,
  choose: (type: string) => void,
): TemplateResult | typeof nothing {
  if (types.length < 2) return nothing;
  const nameOf = ({ type = '', bytes: size }: ExportChoice): string =>
    `${type === 'as-base' ? 'original types' : type}${size === undefined ? '' : ` · ${bytes(size)}`}`;
  return html`<label for="take-type">Type of the weights in GGUF files</label
    ><select
      id="take-type"
      @input=${({ target }: Event) => {
        if (target instanceof HTMLSelectElement) choose(target.value);
      }}
    >
      ${types.map(
        (choice) =>
          html`<option value=${choice.type ?? ''} ?selected=${choice.type === chosen}>
            ${nameOf(choice)}
          </option>`,
      )}
    </select>`;
}
