/** The prompt of samples: the beginning of the chosen text, until another prompt is typed. */
import { byId } from './dom.js';

const LENGTH = 24;
/** Number of bytes of a text that are read. */
const BYTES = 8192;
/** Number of bytes of a file of rows that are read; its first row may be long. */
const ROW_BYTES = 1 << 20;

/** Returns the value of a field that was suggested, not typed. */
export const suggestionOf = (field: HTMLElement): string | undefined =>
  field.dataset['suggested'] ?? (field instanceof HTMLInputElement ? field.defaultValue : undefined);

/** Keys of a row whose values are no text to begin with. */
const NO_TEXT = ['role', 'from', 'type', 'id', 'name', 'tools'];

/** Returns the first text of a row: that of its first message, its prompt, or whatever else it begins with. */
function firstText(row: unknown): string {
  if (typeof row === 'string') return row;
  const parts: unknown[] = Array.isArray(row)
    ? row
    : typeof row === 'object' && row !== null
      ? Object.entries(row).flatMap(([key, value]): unknown[] => (NO_TEXT.includes(key) ? [] : [value]))
      : [];
  for (const part of parts) {
    const text = firstText(part);
    if (text.trim() !== '') return text;
  }
  return '';
}

/** Returns the first text of a JSONL file's first example. */
function ofExample(line: string): string {
  try {
    return firstText(JSON.parse(line));
  } catch {
    return '';
  }
}

/**
 * Returns the first whole words of a text, or the first letters in a script without spaces. Every character comes from the text, since a model may
 * know no others.
 */
export function beginning(text: string): string {
  const line = text.split(/[\n\r\u2028\u2029]/).find((each) => each.trim() !== '') ?? '';
  const letters = Array.from(line.trim());
  return letters.length <= LENGTH
    ? letters.join('')
    : letters
        .slice(0, LENGTH)
        .join('')
        .replace(/(\s)\S*$/, '$1');
}

/** Returns the prompt of samples: the typed one, or else the beginning of the text. */
export function chosenPrompt(): string {
  const { value, placeholder } = byId('prompt', HTMLInputElement);
  return value || placeholder;
}

export async function promptOf(file: File): Promise<string> {
  if (file.name.endsWith('.tokens')) return '';
  if (!file.name.endsWith('.jsonl')) return beginning(await file.slice(0, BYTES).text());
  const text = await file.slice(0, ROW_BYTES).text();
  return beginning(ofExample(text.split('\n').find((line) => line.trim() !== '') ?? ''));
}

/** Suggests the beginning of this text, in place of the previous suggestion. */
export async function suggestPrompt(data: File | { text: string }): Promise<void> {
  const prompt = data instanceof File ? await promptOf(data).catch(() => '') : beginning(data.text);
  const input = byId('prompt', HTMLInputElement);
  if (prompt === '') return;
  // An emptied field shows the placeholder, and uses it.
  input.placeholder = prompt;
  if (input.value !== suggestionOf(input)) return;
  input.value = prompt;
  input.dataset['suggested'] = prompt;
}
