/** When the page goes out of sight it may not come back: `pagehide` is the last that a closed tab hears. */
export function onHidden(work: () => void): () => void {
  if (typeof document === 'undefined' || typeof window === 'undefined') return () => undefined;
  const changed = (): void => {
    if (document.visibilityState === 'hidden') work();
  };
  document.addEventListener('visibilitychange', changed);
  window.addEventListener('pagehide', work);
  return () => {
    document.removeEventListener('visibilitychange', changed);
    window.removeEventListener('pagehide', work);
  };
}
