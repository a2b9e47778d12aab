/** One place of the list: its sentence, its file with buttons, or the reason why there is none, and what is typed there. */
import { html, nothing } from 'lit-html';
import type { TemplateResult } from 'lit-html';

import { picks } from '../pick.js';
import type { Named, Place } from './places.js';

export type To = 'download' | 'folder' | 'file';
/** Work for a place: how far it is, or what came of it. */
export interface Work {
  id: string;
  words: string;
  fault?: boolean;
  receipt?: HTMLElement[];
}

export interface Item {
  place: Place;
  facts: string;
  /** Reason why the place cannot be reached. */
  reason: string | undefined;
  named: Named;
  /** True while anything is written. */
  busy: boolean;
  work: Work | undefined;
  system: string;
  /** True if the data are the text that is embedded in this page. */
  hasText: boolean;
}
export interface Acts {
  take: (place: Place, to: To) => void;
  cancel: () => void;
  copy: (text: string, place: Place) => void;
  modelfile: () => void;
  system: (text: string) => void;
  text: () => void;
}

function buttons({ place, busy, work, hasText }: Item, acts: Acts): TemplateResult {
  const { id, title, format } = place;
  const isFolder = id === 'ollama' || format === 'safetensors' || format === 'peft';
  const button = (to: To, text: string): TemplateResult =>
    html`<button
      type="button"
      aria-label=${`${text}, ${title}`}
      ?disabled=${busy}
      @click=${() => acts.take(place, to)}
    >
      ${text}
    </button>`;
  return html`<div class="acts">
    ${button('download', 'Download')}
    ${
      hasText ? html`<button type="button" @click=${acts.text}>Download its text</button>` : nothing
    }
    ${
      id === 'ollama'
        ? html`<button type="button" id="take-modelfile" ?disabled=${busy} @click=${acts.modelfile}>
            Download the Modelfile
          </button>`
        : nothing
    }
    ${
      format !== undefined && isFolder && picks('Directory')
        ? button('folder', 'Into a folder')
        : nothing
    }
    ${format !== undefined && picks('SaveFile') ? button('file', 'Save as a file') : nothing}
    ${
      busy && work?.id === id
        ? html`<button type="button" @click=${acts.cancel}>Cancel</button>`
        : nothing
    }
  </div>`;
}

function steps({ place, named, system }: Item, acts: Acts): TemplateResult {
  const { id, title } = place;
  const [also, typed] = [place.also?.(named), place.typed(named)];
  return html`<details class="table">
    <summary>How it is used</summary>
    ${
      id === 'ollama'
        ? html`<label for="take-system">System message, if it should have one</label
            ><input
              id="take-system"
              autocomplete="off"
              .value=${system}
              @input=${({ target }: Event) =>
                acts.system(target instanceof HTMLInputElement ? target.value : '')}
            />`
        : nothing
    }
    ${also === undefined ? nothing : html`<p class="facts">${also}</p>`}
    ${typed.map(
      (text, at) =>
        html`<div class="typed">
          <pre><code>${text}</code></pre>
          <button
            type="button"
            aria-label=${`Copy, ${title}${typed.length > 1 ? `, part ${at + 1}` : ''}`}
            @click=${() => acts.copy(text, place)}
          >
            Copy
          </button>
        </div>`,
    )}
  </details>`;
}

export function itemOf(item: Item, acts: Acts): TemplateResult {
  const { place, facts, reason, work } = item;
  const { id, title, about } = place;
  const done = work?.id === id ? work : undefined;
  return html`<li id="take-${id}">
    <h3>${title}</h3>
    <p>${about}</p>
    ${
      reason === undefined
        ? html`<p class="facts">${facts}</p>
            ${buttons(item, acts)}
            ${
              done === undefined || done.words === ''
                ? nothing
                : done.fault
                  ? html`<p class="fault" role="alert">${done.words}</p>`
                  : html`<p class="facts">${done.words}</p>`
            }
            ${steps(item, acts)}
            ${
              done?.receipt
                ? html`<details class="table">
                    <summary>Receipt</summary>
                    ${done.receipt}
                  </details>`
                : nothing
            }`
        : html`<p class="facts reason"><strong>Not possible:</strong> ${reason}</p>`
    }
  </li>`;
}
