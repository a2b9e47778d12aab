/** A line for the last failure, which is announced when it comes. */
import { html } from 'lit-html';
import type { TemplateResult } from 'lit-html';

import { faultOf } from '../words.js';

/** Shows why a request failed; nothing if it did not. */
export const faultLine = (id: string, thrown: unknown): TemplateResult =>
  html`<p
    class="fault"
    id=${id}
    role="alert"
    .textContent=${thrown === undefined ? '' : faultOf(thrown)}
  ></p>`;
