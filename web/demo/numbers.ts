/** The numbers of the next run: suggested for what is trained, until others are typed for the same model and data. */
import { html, nothing, render } from 'lit-html';

import { byId, nextRun } from './dom.js';

const NUMBERS = [
  's-steps',
  's-rate',
  's-batch',
  's-length',
  's-sample',
  's-precision',
  's-schedule',
] as const;
export type NumberId = (typeof NUMBERS)[number];
/** A suggested value, with the reason for it if there is one. */
export interface Suggestion {
  value: string | number;
  reason?: string | undefined;
}
export type Suggestions = Partial<Record<NumberId, Suggestion | undefined>>;
type Values = Partial<Record<NumberId, string>>;

const KEY = 'tabtune.numbers';
/** Number of choices of a model and data whose typed numbers are kept. */
const KEPT = 12;

/** The typed numbers of each choice of a model and data, the last one at the end. */
const typed = new Map<string, Values>();
let suggested: Suggestions = {};
/** Names the current choice. */
let current: () => string = () => '';
let changed: () => void = () => undefined;

export const isNumber = (id: string): id is NumberId => (NUMBERS as readonly string[]).includes(id);
const fieldOf = (id: NumberId): HTMLInputElement | HTMLSelectElement => {
  const field = byId(id, HTMLElement);
  if (field instanceof HTMLInputElement || field instanceof HTMLSelectElement) return field;
  throw new Error(`#${id} is no field`);
};
const valuesNow = (): Values => typed.get(current()) ?? {};

/** Returns whether a number was typed for the current model and data. */
export const isTyped = (id: NumberId): boolean => valuesNow()[id] !== undefined;

function keep(): void {
  for (const [name] of [...typed].slice(0, -KEPT)) typed.delete(name);
  try {
    localStorage.setItem(KEY, JSON.stringify([...typed]));
  } catch {
    // Nothing depends on it.
  }
}

function restore(): void {
  let kept: unknown;
  try {
    kept = JSON.parse(localStorage.getItem(KEY) ?? '[]');
  } catch {
    // Storage may be disabled, or contain something else: then nothing was typed.
  }
  for (const entry of Array.isArray(kept) ? kept : []) {
    const [name, values] = Array.isArray(entry) ? (entry as unknown[]) : [];
    if (typeof name !== 'string' || typeof values !== 'object' || values === null) continue;
    const own = Object.entries(values).filter(
      ([id, value]) => isNumber(id) && typeof value === 'string',
    );
    typed.set(name, { ...Object.fromEntries(own), ...typed.get(name) });
  }
}

/** Takes a number that somebody chose for the current model and data, or none; one that is suggested is none of theirs. */
export function setNumber(id: NumberId, value: string | undefined): void {
  const name = current();
  const { [id]: _, ...others } = valuesNow();
  const isOwn = value !== undefined && value !== String(suggested[id]?.value);
  const own = isOwn ? { ...others, [id]: value } : others;
  typed.delete(name);
  if (Object.keys(own).length > 0) typed.set(name, own);
  keep();
  show();
}

/** Shows the values and the reasons for them. */
function show(): void {
  const own = valuesNow();
  for (const id of NUMBERS) {
    const suggestion = suggested[id];
    const value = own[id] ?? (suggestion && String(suggestion.value));
    const field = fieldOf(id);
    // A value that is being typed is not replaced by the same one in another form.
    if (value !== undefined && field.value !== value) field.value = value;
    const back = (): void => {
      setNumber(id, undefined);
      changed();
      field.focus();
    };
    const word =
      field instanceof HTMLSelectElement
        ? [...field.options].find((option) => option.value === String(suggestion?.value))?.text
        : suggestion?.value;
    // The suggestion for a number that was typed on an earlier visit is known once it is taken back.
    const other = word === undefined ? '' : ` Suggested: ${word}.`;
    render(
      own[id] === undefined
        ? (suggestion?.reason ?? nothing)
        : html`Yours.${other}
            <button
              type="button"
              class="quiet"
              aria-label=${`Back to suggested${word === undefined ? '' : `: ${word}`}`}
              @click=${back}
            >
              Back to suggested
            </button>`,
      byId(`${id}-why`, HTMLElement),
    );
  }
}

/** Suggests values for the current model and data; typed ones stay. */
export function suggestNumbers(all: Suggestions): void {
  suggested = all;
  show();
}

/** Follows what is typed. `name` names the current model and data, `then` is called when a number changes by a press. */
export function followNumbers(name: () => string, then: () => void): void {
  current = name;
  changed = then;
  restore();
  for (const part of nextRun())
    part.addEventListener('input', ({ target }) => {
      if (
        (target instanceof HTMLInputElement || target instanceof HTMLSelectElement) &&
        isNumber(target.id)
      )
        setNumber(target.id, target.value);
    });
  show();
}
