/** The faults of the next run, each in red next to what caused it, with links to the fields of the form that it is about. */
import { escaped, TabtuneError } from 'tabtune';

import { byId, make } from '../dom.js';
import { labelOf } from '../schema-form.js';
import { codeOf, showFault } from '../words.js';
import type { Place } from '../words.js';
import { FIELDS } from './advanced-fold.js';

/** Fields of the form by the options that they set, besides those of the advanced settings. */
const OTHERS: Readonly<Record<string, string>> = {
  ...FIELDS,
  'lrScheduler.type': 's-schedule',
  'optimizer.type': 's-optimizer',
  precision: 's-precision',
  sampleEvery: 's-sample',
  samplePrompt: 'prompt',
  'sample.temperature': 'temperature',
  saveEvery: 's-save',
};
/** Codes of refused options, whose subjects are the paths of options. */
const OF_OPTIONS = /^(option|config)\.invalid$/;
const PATH = /^[a-z]\w*(\.\w+)*$/;

/** Returns the field of an option, if it is on the page. */
function fieldOf(path: string): HTMLElement | null {
  const [group = '', ...inner] = path.split('.');
  const end = CSS.escape(inner.at(-1) ?? '');
  // The field of a setting of a rule has the name of the rule between them.
  const advanced = end === '' ? `#a-${CSS.escape(group)}` : `[id^="a-${group}-"][id$="-${end}"]`;
  return document.getElementById(OTHERS[path] ?? '') ?? document.querySelector(advanced);
}

/** Returns the name of an option as the page has it. */
function nameOf(path: string): string {
  const id = OTHERS[path];
  const label = id === undefined ? null : document.querySelector(`label[for="${id}"]`);
  return label?.textContent.trim() ?? labelOf(path.split('.').at(-1) ?? path);
}

/** Moves the focus to the field of an option, which may be folded away, or not be made yet. */
function show(path: string): void {
  const name = OTHERS[path] === undefined ? 'advanced' : 'numbers';
  byId('numbers', HTMLDetailsElement).open = true;
  byId(name, HTMLDetailsElement).open = true;
  let frames = 100;
  const find = (): void => {
    const field = fieldOf(path);
    if (field) field.focus();
    else if ((frames -= 1) > 0) requestAnimationFrame(find);
  };
  find();
}

/** Returns a link to the field of an option. */
function linkTo(path: string): HTMLAnchorElement {
  const link = make('a', nameOf(path));
  link.href = '#numbers';
  link.addEventListener('click', (event) => {
    event.preventDefault();
    show(path);
  });
  return link;
}

/** Returns the faults of options: the path of each, and what is wrong with its value. */
function faultsOfOptions(thrown: unknown): { path: string; words: string }[] {
  if (!(thrown instanceof TabtuneError) || !OF_OPTIONS.test(thrown.detail.code ?? '')) return [];
  const { refusals = [], path } = thrown.detail;
  // The options of a call have snake case in the core.
  const camel = (name: string): string =>
    name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  const faults = refusals.map(({ subject = '', expected, found, hint }) => {
    const have = found === undefined || /^(NaN|null)$/.test(found) ? 'nothing' : found;
    const words = `: expected ${expected ?? 'another value'}, found ${have}. ${hint ?? ''}`;
    return { path: camel(subject), words: words.trim() };
  });
  if (faults.length > 0) return faults.every((each) => PATH.test(each.path)) ? faults : [];
  if (path === undefined || !PATH.test(path)) return [];
  const [, found, expected] = /^\S+ is (.+), but must be (.+)\.$/.exec(thrown.message) ?? [];
  const words = expected === undefined ? thrown.message : `expected ${expected}, found ${found}.`;
  return [{ path: camel(path), words: `: ${words}` }];
}

export class Faults {
  readonly #places: Readonly<Record<Place, HTMLElement>> = {
    model: byId('model-fault', HTMLElement),
    data: byId('data-fault', HTMLElement),
    train: byId('setup-fault', HTMLElement),
  };

  /** Shows a fault in its place, and in no other. */
  show(thrown: unknown, place: Place): void {
    this.clear();
    const element = this.#places[place];
    const faults = faultsOfOptions(thrown);
    if (faults.length === 0) return showFault(element, thrown);
    element.replaceChildren();
    for (const { path, words } of faults) element.append(linkTo(path), `${escaped(words)} `);
    element.append(make('small', `[${codeOf(thrown)}]`));
    element.hidden = false;
  }

  /** Removes the faults of these places. */
  clear(places: readonly Place[] = ['model', 'data', 'train']): void {
    for (const place of places) this.#places[place].hidden = true;
  }
}

/** Codes of faults in the files of a model. */
const OF_MODEL = /^(gguf|safetensors|tokenizer|model|hub|download|folder|checkpoint)\./;

/** Returns the place of a fault that was found by a start, of which everything is part. */
export function placeOf(thrown: unknown): Place {
  const isFile = thrown instanceof TabtuneError && thrown.code === 'BAD_MODEL_FILE';
  return isFile || OF_MODEL.test(codeOf(thrown)) ? 'model' : 'train';
}
