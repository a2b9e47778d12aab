/** The prompt of samples: how the chosen text begins, until another is typed. */
import { byId } from './dom.js';

const LENGTH = 24;
/** Bytes of a file that are looked at. */
const BYTES = 8192;

/** The value that nobody typed. */
export const suggestionOf = (field: HTMLElement): string | undefined => field.dataset['suggested'] ?? (field instanceof HTMLInputElement ? field.defaultValue : undefined);

/** The first text of a JSONL file's first example. */
function ofExample(line: string): string {
  let example: unknown;
  try {
    example = JSON.parse(line);
  } catch {
    return '';
  }
  const messages: unknown = Reflect.get(Object(example), 'messages');
  const first: unknown = Array.isArray(messages) ? messages[0] : undefined;
  const text: unknown = Reflect.get(Object(example), 'prompt') ?? Reflect.get(Object(first), 'content');
  return typeof text === 'string' ? text : '';
}

/** Whole words of the beginning; letters of a script that has no spaces. */
function beginning(text: string): string {
  const line = text.split('\n').find((each) => each.trim() !== '') ?? '';
  const letters = Array.from(line.trim());
  return letters.length <= LENGTH ? letters.join('') : letters.slice(0, LENGTH).join('').replace(/\s\S*$/, ' ');
}

async function promptOf(file: File): Promise<string> {
  if (file.name.endsWith('.tokens')) return '';
  const text = await file.slice(0, BYTES).text();
  return beginning(file.name.endsWith('.jsonl') ? ofExample(text.split('\n')[0] ?? '') : text);
}

/** Suggests how this text begins, in place of what was suggested before. */
export async function suggestPrompt(data: File | { text: string }): Promise<void> {
  const prompt = data instanceof File ? await promptOf(data).catch(() => '') : beginning(data.text);
  const input = byId('prompt', HTMLInputElement);
  if (prompt === '' || input.value !== suggestionOf(input)) return;
  input.value = prompt;
  input.dataset['suggested'] = prompt;
}
