/** The form of all settings, made from their schema when it is first opened. */
import { html, nothing, render } from 'lit-html';
import type { TemplateResult } from 'lit-html';
import { escaped } from 'tabtune';
import type { TrainOptions } from 'tabtune';
import { optionsSchema } from 'tabtune/schema';

import { advancedValue, faultAt, setAdvanced } from '../advanced.js';
import { groupsOf, textOf, valueOf } from '../schema-form.js';
import type { SettingField, SettingGroup } from '../schema-form.js';
import { begun } from '../words.js';

function field({
  path,
  label,
  about,
  control,
  words,
  placeholder,
  schema,
}: SettingField): TemplateResult {
  const id = `a-${path.replaceAll('.', '-')}`;
  const fault = faultAt(path);
  const value = textOf(advancedValue(path));
  const said = `${id}-about${fault === undefined ? '' : ` ${id}-fault`}`;
  const take = ({ target }: Event): void => {
    if (target instanceof HTMLInputElement || target instanceof HTMLSelectElement)
      setAdvanced(path, valueOf(target.value, schema));
  };
  return html`<div class="field">
    <label for=${id}>${label}</label>
    ${
      control === 'choice'
        ? html`<select
            id=${id}
            aria-describedby=${said}
            aria-invalid=${fault !== undefined}
            @input=${take}
          >
            <option value="" ?selected=${value === ''}>
              ${placeholder === '' ? 'Not given' : `Default: ${placeholder}`}
            </option>
            ${words.map((word) => html`<option value=${word} ?selected=${value === word}>${word}</option>`)}
          </select>`
        : html`<input
            id=${id}
            type=${control}
            step="any"
            autocomplete="off"
            spellcheck="false"
            placeholder=${placeholder}
            aria-describedby=${said}
            aria-invalid=${fault !== undefined}
            .value=${value}
            @input=${take}
          />`
    }
    ${fault === undefined ? nothing : html`<p class="fault" id="${id}-fault">${begun(escaped(fault))}</p>`}
    <p class="why" id="${id}-about">${about}</p>
  </div>`;
}

const group = ({ title, about, fields }: SettingGroup): TemplateResult =>
  html`<fieldset class="numbers">
    <legend>${title}${about === '' ? nothing : html` <small>${about}</small>`}</legend>
    ${fields.map(field)}
  </fieldset>`;

/** Draws the form; `base` has the values of the next run without it. */
export function drawAdvanced(place: HTMLElement, base: TrainOptions): void {
  render(groupsOf(optionsSchema, base).map(group), place);
}
