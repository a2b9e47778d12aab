/** Calls `take` with files dropped on `target`; for a dropped folder, with the files directly in it. */
export function onDrop(target: HTMLElement, take: (files: File[]) => void): void {
  target.addEventListener('dragover', (event) => {
    event.preventDefault();
    target.classList.add('over');
  });
  target.addEventListener('dragleave', () => target.classList.remove('over'));
  target.addEventListener('drop', (event) => {
    event.preventDefault();
    target.classList.remove('over');
    const items = [...(event.dataTransfer?.items ?? [])];
    // Entries must be taken before the event ends; they are read later.
    const entries = items.flatMap((item) => item.webkitGetAsEntry() ?? []);
    Promise.all(entries.map(filesOf)).then(
      (files) => take(files.flat()),
      () => take([...(event.dataTransfer?.files ?? [])]),
    );
  });
}

/** Ignores files dropped next to their target, which would otherwise replace the page. */
export function ignoreStrayDrops(): void {
  for (const type of ['dragover', 'drop']) addEventListener(type, (event) => event.preventDefault());
}

async function filesOf(entry: FileSystemEntry): Promise<File[]> {
  if (entry instanceof FileSystemFileEntry) return [await new Promise<File>((resolve, reject) => entry.file(resolve, reject))];
  if (!(entry instanceof FileSystemDirectoryEntry)) return [];
  const reader = entry.createReader();
  const found: File[] = [];
  for (;;) {
    // A reader returns up to a hundred entries at a time, and none at the end.
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return found;
    for (const inner of some) if (inner.isFile) found.push(...(await filesOf(inner)));
  }
}
