/** The alternative storage: the newest generation as a checkpoint folder in the origin's private file system, `tabtune/<run>/<generation>/`. */
import { privateFiles, unanswered } from '../../protocol/answers.js';
import { headJson, headParser, parsedJson } from './head.js';
import type { Head } from './head.js';
import { blocked, nameOf } from './faults.js';
import { CHECKPOINT_JSON, sumOf } from './manifest.js';
import { bytesOf, carried, chunksIn } from './generation-copy.js';
import type { GenerationCopy } from './generation-copy.js';
import { accessSink, pour } from './sinks.js';

const ROOT = 'tabtune';
/** Name of the file with the database's records of run and generation, in addition to the checkpoint's own files. */
const HEAD = 'tabtune.json';
const DATA = 'data';

export interface Resident {
  generation: number;
  head: Head;
  copy: GenerationCopy;
}

async function root(create: boolean): Promise<FileSystemDirectoryHandle | undefined> {
  const origin = await privateFiles();
  return origin === undefined ? undefined : inside(origin, ROOT, create);
}

async function inside(
  folder: FileSystemDirectoryHandle,
  name: string,
  create: boolean,
): Promise<FileSystemDirectoryHandle | undefined> {
  if (create) return folder.getDirectoryHandle(name, { create });
  // The name is not that of a folder, or the folder does not exist.
  return folder.getDirectoryHandle(name).catch(() => undefined);
}

async function fileIn(folder: FileSystemDirectoryHandle, name: string): Promise<File | undefined> {
  return folder
    .getFileHandle(name)
    .then((handle) => handle.getFile())
    .catch(() => undefined);
}

async function writeFile(
  folder: FileSystemDirectoryHandle,
  name: string,
  pieces: AsyncIterable<ArrayBuffer> | Iterable<ArrayBuffer>,
): Promise<void> {
  await pour(await accessSink(await folder.getFileHandle(name, { create: true })), pieces);
}

async function namesIn(folder: FileSystemDirectoryHandle): Promise<string[]> {
  const names: string[] = [];
  for await (const name of folder.keys()) names.push(name);
  return names;
}

const generationsIn = async (folder: FileSystemDirectoryHandle): Promise<number[]> =>
  (await namesIn(folder))
    .filter((name) => /^[1-9][0-9]{0,15}$/.test(name))
    .map(Number)
    .sort((a, b) => b - a);

/** Lists the runs that have a copy in the alternative storage. */
export async function residents(): Promise<string[]> {
  const folder = await root(false);
  return folder === undefined ? [] : namesIn(folder);
}

/** Returns the newest generation there whose files have their full lengths; their bytes are verified as they are read. */
export async function resident(run: string, generation?: number): Promise<Resident | undefined> {
  const folder = await root(false).then((home) => home && inside(home, run, false));
  if (folder === undefined) return undefined;
  for (const found of await generationsIn(folder)) {
    if (generation !== undefined && generation !== found) continue;
    const opened = await openGeneration(folder, found).catch(() => undefined);
    if (opened?.head.manifest.run === run) return opened;
  }
  return undefined;
}

async function openGeneration(
  folder: FileSystemDirectoryHandle,
  generation: number,
): Promise<Resident | undefined> {
  const inner = await inside(folder, String(generation), false);
  const written = inner && (await fileIn(inner, HEAD));
  if (inner === undefined || written === undefined) return undefined;
  const head = headParser(parsedJson(await written.text()), HEAD);
  const { manifest, run: record, history = [] } = head;
  const files = new Map<string, File>();
  for (const file of manifest.files) {
    const found = await fileIn(inner, file.name);
    if (found?.size !== file.bytes || sumOf(file.chunks) !== file.bytes) return undefined;
    files.set(file.name, found);
  }
  const data = record?.data && (await fileIn(folder, DATA));
  return { generation, head, copy: { manifest, record, history, ...chunksIn(files, data) } };
}

/** Writes a generation next to the existing one, which is removed once the new one is complete. */
export async function writeResident(copy: GenerationCopy): Promise<void> {
  const { run, generation, files } = copy.manifest;
  const home = await root(true);
  const folder = home && (await inside(home, run, true));
  if (folder === undefined)
    throw new DOMException('the origin has no file system', 'NotSupportedError');
  await leave(folder, String(generation));
  try {
    await writeData(folder, copy);
    const inner = await folder.getDirectoryHandle(String(generation), { create: true });
    await writeFile(inner, HEAD, [headJson(copy).buffer]);
    // A checkpoint is complete once its checkpoint.json exists.
    const last = files.filter(({ name }) => name === CHECKPOINT_JSON);
    const sealed = [...files.filter(({ name }) => name !== CHECKPOINT_JSON), ...last];
    for (const file of sealed) {
      const pieces = carried(
        { manifest: { ...copy.manifest, files: [file] }, chunk: copy.chunk },
        'save',
      );
      await writeFile(inner, file.name, bytesOf(pieces));
    }
  } catch (thrown) {
    await leave(folder, String(generation));
    throw thrown;
  }
  for (const older of await generationsIn(folder))
    if (older !== generation) await leave(folder, String(older));
}

/** Writes the data of a run, only once because they never change. */
async function writeData(
  folder: FileSystemDirectoryHandle,
  { record, data }: GenerationCopy,
): Promise<void> {
  if (record?.data === undefined || (await fileIn(folder, DATA))?.size === record.data.bytes)
    return;
  const { chunks } = record.data;
  await writeFile(
    folder,
    DATA,
    (async function* (): AsyncGenerator<ArrayBuffer> {
      let offset = 0;
      for (const chunk of chunks) {
        yield await data(offset, chunk);
        offset += chunk.bytes;
      }
    })(),
  );
}

async function leave(folder: FileSystemDirectoryHandle, name: string): Promise<void> {
  await folder.removeEntry(name, { recursive: true }).catch((thrown: unknown) => {
    if (nameOf(thrown) !== 'NotFoundError' && nameOf(thrown) !== 'TypeError') throw thrown;
  });
}

/** Removes a run, or one generation of it, from the alternative storage. */
export async function evict(run: string, generation?: number): Promise<void> {
  const home = await root(false);
  if (unanswered.has('files')) throw blocked('the browser does not let the second copy be deleted');
  if (home === undefined) return;
  if (generation === undefined) return leave(home, run);
  const folder = await inside(home, run, false);
  if (folder !== undefined) await leave(folder, String(generation));
}

/** Removes the remains of an interrupted copy; the checkpoint.json of a generation is written last. */
export async function tidy(run: string): Promise<void> {
  const home = await root(false);
  const folder = home && (await inside(home, run, false));
  if (home === undefined || folder === undefined) return;
  let left = 0;
  for (const generation of await generationsIn(folder)) {
    const inner = await inside(folder, String(generation), false);
    if (inner && (await fileIn(inner, CHECKPOINT_JSON))) left += 1;
    else await leave(folder, String(generation));
  }
  if (left === 0) await leave(home, run);
}
