import type { Link } from './link.js';

/**
 * Saves when the page is hidden, since it may not come back: `pagehide` is the last event of a tab that is closed. Looks at the device on its return.
 */
export function watchVisibility(link: Link): () => void {
  if (typeof document === 'undefined' || typeof window === 'undefined') return () => undefined;
  const quietly = (call: Promise<unknown>): void => void call.catch(() => undefined);
  const hidden = (): void => quietly(link.call('checkpoint.autosave', { always: false }));
  const changed = (): void =>
    document.visibilityState === 'hidden' ? hidden() : quietly(link.call('device.look', undefined));
  document.addEventListener('visibilitychange', changed);
  window.addEventListener('pagehide', hidden);
  return () => {
    document.removeEventListener('visibilitychange', changed);
    window.removeEventListener('pagehide', hidden);
  };
}
