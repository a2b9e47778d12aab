import { byId } from '../dom.js';

/** Light or dark: the system's choice until the switch is used; paper is light. */
export function installTheme(onChange: () => void): void {
  const button = byId('theme', HTMLButtonElement);
  const system = matchMedia('(prefers-color-scheme: dark)');
  const paper = matchMedia('print');
  let own: boolean | undefined;
  const apply = (printed = paper.matches): void => {
    const dark = own ?? system.matches;
    document.documentElement.dataset['theme'] = dark && !printed ? 'dark' : 'light';
    button.textContent = dark ? 'Light' : 'Dark';
    onChange();
  };
  button.addEventListener('click', () => {
    own = !(own ?? system.matches);
    apply();
  });
  for (const query of [system, paper]) query.addEventListener('change', () => apply());
  // A browser that prints may tell of the other medium only after it has drawn the page.
  addEventListener('beforeprint', () => apply(true));
  addEventListener('afterprint', () => apply());
  apply();
}
