/** The five steps from a model to what one takes away: on a desk they are seen together, on a phone one at a time. */
import { byId } from './dom.js';

const STEPS = ['model', 'data', 'train', 'try', 'take'] as const;
export type Step = (typeof STEPS)[number];

const linkTo = (step: Step): HTMLAnchorElement | null =>
  document.querySelector<HTMLAnchorElement>(`.path a[href="#view-${step}"]`);

/** Marks a step as the current one, which a phone shows alone. */
export function show(step: Step): void {
  for (const each of STEPS) {
    byId(`view-${each}`, HTMLElement).classList.toggle('current', each === step);
    const link = linkTo(each);
    if (each === step) link?.setAttribute('aria-current', 'step');
    else link?.removeAttribute('aria-current');
  }
}

/** Shows a step, scrolls to it and moves the focus to its heading. */
export function goTo(step: Step): void {
  show(step);
  const view = byId(`view-${step}`, HTMLElement);
  view.scrollIntoView({ block: 'start' });
  view.querySelector('h2')?.focus({ preventScroll: true });
}

export function installPath(): void {
  show('model');
  for (const step of STEPS)
    linkTo(step)?.addEventListener('click', (event) => {
      event.preventDefault();
      goTo(step);
    });
}
