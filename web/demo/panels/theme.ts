import { byId } from '../dom.js';

/** Light or dark: the system's choice until the switch is used. */
export function installTheme(onChange: () => void): void {
  const button = byId('theme', HTMLButtonElement);
  const system = matchMedia('(prefers-color-scheme: dark)');
  let own: boolean | undefined;
  const apply = (): void => {
    const dark = own ?? system.matches;
    document.documentElement.dataset['theme'] = dark ? 'dark' : 'light';
    button.textContent = dark ? 'Light' : 'Dark';
    onChange();
  };
  button.addEventListener('click', () => {
    own = !(own ?? system.matches);
    apply();
  });
  system.addEventListener('change', apply);
  apply();
}
