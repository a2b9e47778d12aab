/** Reports when the page is hidden, since it may not come back: `pagehide` is the last event of a tab that is closed. */
export function watchVisibility(onHidden: () => void, onReturn: () => void): () => void {
  if (typeof document === 'undefined' || typeof window === 'undefined') return () => undefined;
  const changed = (): void => (document.visibilityState === 'hidden' ? onHidden() : onReturn());
  document.addEventListener('visibilitychange', changed);
  window.addEventListener('pagehide', onHidden);
  return () => {
    document.removeEventListener('visibilitychange', changed);
    window.removeEventListener('pagehide', onHidden);
  };
}
