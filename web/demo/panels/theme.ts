import { byId } from '../dom.js';

/** Light or dark: the system's choice until the switch is used; paper is light. */
export function installTheme(onChange: () => void): void {
  const button = byId('theme', HTMLButtonElement);
  const system = matchMedia('(prefers-color-scheme: dark)');
  const paper = matchMedia('print');
  let chosen: boolean | undefined;
  const apply = (printed = paper.matches): void => {
    const dark = chosen ?? system.matches;
    document.documentElement.dataset['theme'] = dark && !printed ? 'dark' : 'light';
    button.textContent = dark ? 'Light' : 'Dark';
    onChange();
  };
  button.addEventListener('click', () => {
    chosen = !(chosen ?? system.matches);
    apply();
  });
  for (const query of [system, paper]) query.addEventListener('change', () => apply());
  // When printing, a browser may report the other medium only after it has drawn the page.
  addEventListener('beforeprint', () => apply(true));
  addEventListener('afterprint', () => apply());
  apply();
}
