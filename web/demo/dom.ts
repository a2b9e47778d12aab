/** Returns the element of the page with this id; a missing one is a bug in index.html. */
export function byId<T extends HTMLElement>(id: string, kind: abstract new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`index.html has no ${kind.name} #${id}`);
  return found;
}

/** The parts of the page that describe the next run: its model and data, and its settings. */
export const nextRun = (): HTMLElement[] => ['setup', 'numbers'].map((id) => byId(id, HTMLElement));

/** Returns a new element with text content; the text is never parsed as HTML. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  text = '',
  className = '',
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  element.textContent = text;
  if (className !== '') element.className = className;
  return element;
}

/** Returns the value of the chosen radio button of a group. */
export const checked = (name: string): string =>
  document.querySelector<HTMLInputElement>(`input[name="${name}"]:checked`)?.value ?? '';

/** Chooses a radio button of a group. */
export function check(name: string, value: string): void {
  const radio = document.querySelector<HTMLInputElement>(`input[name="${name}"][value="${value}"]`);
  if (radio) radio.checked = true;
}

export function actionButton(text: string, label: string, act: () => void): HTMLButtonElement {
  const button = make('button', text);
  button.type = 'button';
  button.setAttribute('aria-label', label);
  button.addEventListener('click', act);
  return button;
}

/** Offers a Blob as a download. */
export function download(name: string, blob: Blob): void {
  const link = make('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
