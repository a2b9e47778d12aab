/** Names from files, which may become names of files again, but never paths. */
import { plainName } from '../../protocol/file-names.js';

/** Returns whether a name is a plain file name, without a path, on every system. */
export function isFileName(name: string): boolean {
  return (
    name !== '' &&
    name.length <= 255 &&
    name !== '.' &&
    !name.includes('..') &&
    !/[/\\\0]|^[A-Za-z]:/.test(name)
  );
}

/** Returns whether an id may be that of a run: it is used as a key, as the name of a lock, and as the name of a folder. */
export const isRunId = (id: string): boolean => /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(id);

/** Returns a label in a form that is safe in a file name. */
export const asFileName = (label: string): string =>
  plainName(label.replace(/[/\\:*?"<>|]/g, '-').replace(/^\.+/, '-')) || 'run';
