/** The form of the next run, kept over a reload or a crash. Files cannot be kept: a page may read them only after they were chosen. */
import { byId, nextRun } from './dom.js';
import { isNumber } from './numbers.js';
import { suggestionOf } from './prompt.js';

const KEY = 'tabtune.form';
type Field = HTMLInputElement | HTMLSelectElement;

function fields(): Field[] {
  const all = [
    ...nextRun().flatMap((part) => [...part.querySelectorAll('input, select')]),
    ...byId('sampler', HTMLElement).querySelectorAll('input'),
  ];
  return all.filter(
    (each): each is Field =>
      // Numbers are kept by the model and data for which they were typed.
      !isNumber(each.id) &&
      each.closest('#advanced') === null &&
      ((each instanceof HTMLInputElement &&
        !/^(file|radio|password)$/.test(each.type) &&
        // A choice for one download.
        each.closest('#hub-asked') === null) ||
        each instanceof HTMLSelectElement),
  );
}

/** Restores the typed values. */
export function restoreForm(): void {
  let kept: unknown;
  try {
    kept = JSON.parse(localStorage.getItem(KEY) ?? 'null');
  } catch {
    // Storage may be disabled, or contain something else: then the defaults are used.
  }
  if (typeof kept !== 'object' || kept === null) return;
  for (const field of fields()) {
    const value: unknown = Reflect.get(kept, field.id);
    if (typeof value !== 'string') continue;
    const before = field.value;
    field.value = value;
    // A value that is not among the options would leave a list without a choice.
    if (field.value === '' && value !== '') field.value = before;
  }
}

export function keepForm(): void {
  const keep = (): void => {
    try {
      // A suggested prompt belongs to a text, which is not kept.
      const typed = fields().filter(
        (field) => field.id !== 'prompt' || field.value !== suggestionOf(field),
      );
      localStorage.setItem(
        KEY,
        JSON.stringify(Object.fromEntries(typed.map((field) => [field.id, field.value]))),
      );
    } catch {
      // Nothing depends on it.
    }
  };
  for (const part of [...nextRun(), byId('sampler', HTMLElement)])
    part.addEventListener('input', keep);
}
