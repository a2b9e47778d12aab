/** Names that come out of files: they become names of files again, never paths. */

/** Whether a name is that of a file in its own folder, on every system. */
export function isFileName(name: string): boolean {
  return name !== '' && name.length <= 255 && name !== '.' && !name.includes('..') && !/[/\\\0]|^[A-Za-z]:/.test(name);
}

/** Whether an id may be a run's: it is a key, a lock's name, and a folder's. */
export const isRunId = (id: string): boolean => /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(id);

/** A label as part of a name to save under. */
export const asFileName = (label: string): string => label.replace(/[/\\:*?"<>|\p{Cc}\p{Cf}]/gu, '-').replace(/^\.+/, '-').slice(0, 100) || 'run';
