/** The prompt of samples: the beginning of a text that is learned, until another prompt is typed. */
import type { DataPreview } from 'tabtune';

import { byId } from './dom.js';

const LENGTH = 24;

/** Returns the value of a field that was suggested, not typed. */
export const suggestionOf = (field: HTMLElement): string | undefined =>
  field.dataset['suggested'] ??
  (field instanceof HTMLInputElement ? field.defaultValue : undefined);

/**
 * Returns the first whole words of a text, or the first letters in a script without spaces. Every character comes from the text, since a model may
 * know no others; the last word of a text that is `cut` may not be whole.
 */
export function beginning(text: string, cut = false): string {
  const line = text.split(/[\n\r\u2028\u2029]/).find((each) => each.trim() !== '') ?? '';
  const letters = Array.from(line.trim());
  return letters.length <= LENGTH && !(cut && text.endsWith(line))
    ? letters.join('')
    : letters
        .slice(0, LENGTH)
        .join('')
        .replace(/(\s)\S*$/, '$1');
}

/** Returns the prompt of samples: the typed one, or else the suggested one. */
export function chosenPrompt(): string {
  const { value, placeholder } = byId('prompt', HTMLInputElement);
  return value || placeholder;
}

/** A token that a tokenizer or a template writes around a text. */
const isMark = (token: string): boolean => /^[<[].+[>\]]$/.test(token);

/**
 * Returns the prompt that data suggest: the beginning of the first text that a run learns to write, without the tokens around it. The
 * first token of a text, which nothing predicts, belongs to it.
 */
export function promptOf(preview: DataPreview, end: readonly string[]): string {
  for (const { row, segments } of preview) {
    const at = segments.findIndex(({ learned }) => learned);
    const [before, written] = [segments[at - 1], segments[at]];
    if (!written) continue;
    const opening =
      at === 1 && before?.tokens.length === 1 && !isMark(before.text) ? before.text : '';
    const marks = [...end, ...written.tokens.map(({ text }) => text).filter(isMark)];
    const texts = marks.reduce(
      (parts, mark) => parts.flatMap((part) => part.split(mark)),
      [`${opening}${written.text}`],
    );
    // Without a row it is the beginning of a long text.
    const prompt = texts.map((text) => beginning(text, row === null)).find((text) => text !== '');
    if (prompt !== undefined) return prompt;
  }
  return '';
}

/** Suggests a prompt in place of the previous suggestion. */
export function suggestPrompt(prompt: string): void {
  const input = byId('prompt', HTMLInputElement);
  if (prompt === '') return;
  // An emptied field shows the placeholder, and uses it.
  input.placeholder = prompt;
  if (input.value !== suggestionOf(input)) return;
  input.value = prompt;
  input.dataset['suggested'] = prompt;
}
