/** Files that a person drops on the page or chooses. */
import { escaped } from 'tabtune';

/** Folder of a model's chat templates other than the main one: the only folder inside a dropped one that is read. */
const MORE_TEMPLATES = 'additional_chat_templates';

interface Found {
  files: File[];
  /** Names of the folders inside a dropped folder, which are not read. */
  folders: string[];
}
/** Receives the files; `left` says what of a folder is not read, or is empty; `folder` is the name of the one that was dropped, alone. */
export type Take = (files: File[], left: string, folder?: string) => void;

const hasFiles = ({ dataTransfer }: DragEvent): boolean =>
  dataTransfer?.types.includes('Files') ?? false;
const isField = (target: EventTarget | null): boolean =>
  target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement;

/** Elements on which files can be dropped; one inside another takes a drop alone. */
const targets: HTMLElement[] = [];
const taken = new WeakSet<Event>();
/** Returns the element that takes what is dropped on another one. */
const targetOf = ({ target }: Event): HTMLElement | undefined =>
  targets
    .filter((each) => target instanceof Node && each.contains(target))
    .reduce<HTMLElement | undefined>(
      (inner, each) => (inner?.contains(each) === false ? inner : each),
      undefined,
    );

/**
 * Calls `take` with files dropped on `target`; for a dropped folder, with the files directly in it that are not hidden. Other drops, such as text,
 * are left to the fields of the page.
 */
export function onDrop(target: HTMLElement, take: Take, fail: (thrown: unknown) => void): void {
  targets.push(target);
  target.addEventListener('dragover', (event) => {
    if (hasFiles(event)) target.classList.add('over');
  });
  target.addEventListener('dragleave', () => target.classList.remove('over'));
  target.addEventListener('drop', (event) => {
    target.classList.remove('over');
    if (!hasFiles(event) || taken.has(event)) return;
    taken.add(event);
    // Entries must be taken before the event ends; they are read later.
    const entries = [...(event.dataTransfer?.items ?? [])].flatMap(
      (item) => item.webkitGetAsEntry() ?? [],
    );
    Promise.all(entries.map(contentsOf)).then((found) => {
      const folders = found.flatMap((each) => each.folders);
      const left =
        folders.length === 0
          ? ''
          : `Not read: the folder${folders.length > 1 ? 's' : ''} ${folders.map(escaped).join(', ')}.`;
      const [only, ...others] = entries;
      take(
        found.flatMap(({ files }) => files),
        left,
        only && isFolder(only) && others.length === 0 ? only.name : '',
      );
    }, fail);
  });
}

/** Calls `show` with the element that would take the files that are dragged over the page, and with nothing when they are no longer. */
export function onDrag(show: (target: HTMLElement | undefined) => void): void {
  addEventListener('dragover', (event) => {
    if (hasFiles(event)) show(targetOf(event));
  });
  addEventListener('dragleave', ({ relatedTarget }) => {
    if (relatedTarget === null) show(undefined);
  });
  addEventListener('drop', () => show(undefined));
}

/** Calls `take` with the files that are chosen in a field, which is emptied, so that the same files can be chosen again. */
export function onChoice(input: HTMLInputElement, take: Take): void {
  input.addEventListener('change', () => {
    const files = [...(input.files ?? [])];
    input.value = '';
    if (files.length > 0) take(files, '');
  });
}

/** Keeps whatever is dropped outside the fields of the page from replacing the page. */
export function ignoreStrayDrops(): void {
  for (const type of ['dragover', 'drop'] as const)
    addEventListener(type, (event) => {
      if (hasFiles(event) || !isField(event.target)) event.preventDefault();
    });
}

// The classes of entries have other names in some browsers, so that only the flags say what an entry is.
const isFolder = (entry: FileSystemEntry): entry is FileSystemDirectoryEntry => entry.isDirectory;
const fileOf = (entry: FileSystemEntry): Promise<File> =>
  new Promise((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));

async function contentsOf(entry: FileSystemEntry): Promise<Found> {
  if (!isFolder(entry)) return { files: [await fileOf(entry)], folders: [] };
  const inside = (await entriesOf(entry)).filter(({ name }) => !name.startsWith('.'));
  const more = inside.filter(isFolder).find(({ name }) => name === MORE_TEMPLATES);
  const templates = (more ? await entriesOf(more) : []).filter(({ name }) =>
    name.endsWith('.jinja'),
  );
  const files = [...inside, ...templates].filter(({ isFile }) => isFile);
  const folders = inside.filter((each) => isFolder(each) && each !== more).map(({ name }) => name);
  return { files: await Promise.all(files.map(fileOf)), folders };
}

async function entriesOf(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const found: FileSystemEntry[] = [];
  for (;;) {
    // A reader returns up to a hundred entries at a time, and none at the end.
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    if (some.length === 0) return found.sort((a, b) => (a.name < b.name ? -1 : 1));
    found.push(...some);
  }
}
