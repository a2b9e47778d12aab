/** How phases and failures are shown. Sentences are those of the package. */
import { escaped, TabtuneError } from 'tabtune';
import type { Progress } from 'tabtune';

import { make } from './dom.js';
import { bytes, percent } from './format.js';

export const PHASES: Record<Progress['phase'], string> = {
  download: 'Downloading',
  read: 'Reading',
  verify: 'Checking',
  upload: 'Moving the weights to the GPU',
  compile: 'Preparing the GPU',
  save: 'Saving',
  export: 'Writing',
  import: 'Importing',
  measure: 'Measuring',
  ready: 'Ready',
};

/** Returns a sentence that begins with a capital letter, unless it begins with a name. */
export const begun = (text: string): string =>
  text.replace(/^[a-z](?=[a-z]*[ ,])/, (letter) => letter.toUpperCase());

/** Returns the code of a failure. */
export const codeOf = (thrown: unknown): string =>
  thrown instanceof TabtuneError ? (thrown.detail.code ?? thrown.code) : '';

const messageOf = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message : String(thrown);

/** Section of the page in which the cause of a fault is. */
export type Place = 'model' | 'data' | 'train';

/** A refusal of what was chosen, by this page. */
export class Refused extends Error {
  constructor(
    message: string,
    readonly place: Place,
  ) {
    super(message);
  }
}

/** Something that is still to be chosen: it is asked for, and is no fault. */
export class Unchosen extends Refused {}

/** Returns a failure in one line, with what can be done and its code at the end. */
export function faultOf(thrown: unknown, more = ''): string {
  const code = codeOf(thrown);
  return [begun(escaped(messageOf(thrown))), more, code && `[${code}]`].filter(Boolean).join(' ');
}

/** Shows a sentence with its code, which is small. */
export function showSentence(element: HTMLElement, message: string, code: string): void {
  element.replaceChildren(
    begun(escaped(message)),
    ...(code === '' ? [] : [' ', make('small', `[${escaped(code)}]`)]),
  );
}

/** Shows a failure. */
export function showFault(element: HTMLElement, thrown: unknown): void {
  showSentence(element, messageOf(thrown), codeOf(thrown));
  element.hidden = false;
}

/** Returns what is said of a start that failed: what the package refuses is shown next to its cause. */
export const notStarted = (thrown: unknown): string =>
  thrown instanceof TabtuneError ? 'The run did not start.' : faultOf(thrown);

/** Errors after which the worker or its GPU is gone, or cannot be trusted. */
const FINAL = new Set([
  'DEVICE_LOST',
  'GPU_UNAVAILABLE',
  'WORKER_CRASHED',
  'SHADER_FAILED',
  'PROTOCOL',
]);
export const isFinal = (thrown: unknown): boolean =>
  thrown instanceof TabtuneError && FINAL.has(thrown.code);

export const isAbort = (thrown: unknown): boolean =>
  thrown instanceof TabtuneError && thrown.code === 'ABORTED';

export function progressOf({ phase, file, fraction, total }: Progress): string {
  const of = phase === 'download' ? ` of ${bytes(total)}` : '';
  const share = fraction > 0 && fraction < 1 ? `, ${percent(fraction)}${of}` : '';
  return `${PHASES[phase]}${file === undefined ? '' : ` ${escaped(file)}`}${share} …`;
}

/** Returns the part of the form in which a field is. */
export function placeOf(field: EventTarget | null): Place {
  if (!(field instanceof HTMLElement) || !field.closest('#setup')) return 'train';
  return field.closest('#view-model') ? 'model' : 'data';
}
