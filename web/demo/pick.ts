/** The browser's dialogs for folders and files to write to; not every browser has them. */
const dialogOf = (name: string): ((options: object) => Promise<unknown>) | undefined => {
  const found: unknown = Reflect.get(globalThis, name);
  return typeof found === 'function'
    ? (options) => Promise.resolve(Reflect.apply(found, globalThis, [options]) as unknown)
    : undefined;
};
/** Returns whether this browser has the dialog. */
export const picks = (what: 'Directory' | 'SaveFile'): boolean =>
  dialogOf(`show${what}Picker`) !== undefined;

/** Returns the user's choice; `undefined` if the dialog was closed. */
async function picked<T extends FileSystemHandle>(
  what: 'Directory' | 'SaveFile',
  options: object,
  isKind: (found: unknown) => found is T,
): Promise<T | undefined> {
  try {
    const found = await dialogOf(`show${what}Picker`)?.(options);
    return isKind(found) ? found : undefined;
  } catch (thrown) {
    if (thrown instanceof DOMException && thrown.name === 'AbortError') return undefined;
    throw thrown;
  }
}

export const pickFolder = (): Promise<FileSystemDirectoryHandle | undefined> =>
  picked(
    'Directory',
    { mode: 'readwrite' },
    (found): found is FileSystemDirectoryHandle => found instanceof FileSystemDirectoryHandle,
  );
export const pickFile = (suggestedName: string): Promise<FileSystemFileHandle | undefined> =>
  picked(
    'SaveFile',
    { suggestedName },
    (found): found is FileSystemFileHandle => found instanceof FileSystemFileHandle,
  );
