/** A pasted text, kept over a reload if it is small. */
const KEY = 'tabtune.text';
/** Number of characters of the largest text that is kept: browsers allow a page a few megabytes for all that it keeps so. */
const KEPT = 200_000;

/** Returns the text that was pasted on an earlier visit, and whether it was the chosen one. */
export function keptPasted(): { text: string; isChosen: boolean } {
  try {
    const kept = localStorage.getItem(KEY) ?? '';
    return { text: kept.slice(1), isChosen: kept.startsWith('+') };
  } catch {
    // Storage may be disabled: then nothing is kept.
    return { text: '', isChosen: false };
  }
}

/** Keeps the text, and says whether a reload brings it back. */
export function keepPasted(text: string, isChosen: boolean): string {
  try {
    if (text === '' || text.length > KEPT) localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, `${isChosen ? '+' : '-'}${text}`);
  } catch {
    return text === '' ? '' : 'This browser keeps no text over a reload.';
  }
  if (text === '') return '';
  return text.length > KEPT
    ? 'A text of more than 200 kB is not kept over a reload.'
    : 'This text is kept in this browser: a reload brings it back.';
}
