import { byId } from '../dom.js';

const KEY = 'tabtune.theme';

/** Returns whether dark was chosen on an earlier visit; undefined if nothing was. */
function keptTheme(): boolean | undefined {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === 'dark' || kept === 'light' ? kept === 'dark' : undefined;
  } catch {
    // Storage may be disabled: then the system decides.
    return undefined;
  }
}

function keepTheme(dark: boolean): void {
  try {
    localStorage.setItem(KEY, dark ? 'dark' : 'light');
  } catch {
    // The switch works without it, until a reload.
  }
}

/** Light or dark: the system's choice until the switch is used, whose choice is kept over a reload; paper is light. */
export function installTheme(onChange: () => void): void {
  const button = byId('theme', HTMLButtonElement);
  const system = matchMedia('(prefers-color-scheme: dark)');
  const paper = matchMedia('print');
  let chosen = keptTheme();
  const apply = (printed = paper.matches): void => {
    const dark = chosen ?? system.matches;
    document.documentElement.dataset['theme'] = dark && !printed ? 'dark' : 'light';
    button.textContent = dark ? 'Light' : 'Dark';
    onChange();
  };
  button.addEventListener('click', () => {
    chosen = !(chosen ?? system.matches);
    keepTheme(chosen);
    apply();
  });
  for (const query of [system, paper]) query.addEventListener('change', () => apply());
  // When printing, a browser may report the other medium only after it has drawn the page.
  addEventListener('beforeprint', () => apply(true));
  addEventListener('afterprint', () => apply());
  apply();
}
