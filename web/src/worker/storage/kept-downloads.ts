/**
 * Downloads that are kept in the origin's private file system, whole or in part: each is a file with a record of the same name next to it. A file is found
 * by its sum or, if its server vouches for it, by its address.
 */
import { privateFiles } from '../../protocol/answers.js';
import { count, flag, listOf, optional, record, text } from '../../protocol/parse.js';
import type { Parsed } from '../../protocol/parse.js';
import type { DownloadInfo } from '../../protocol/reports.js';
import { sha256 } from './chunks.js';
import { parsedJson } from './head.js';
import { accessSink, drop, pour } from './sinks.js';

const FOLDER = 'tabtune-downloads';
const RECORD = '.json';
/** Delays before each attempt to remove a file, which a worker that was ended keeps open for a moment. */
const AGAIN_MILLIS = [0, 200, 1000];

const fields = {
  /** `hf:owner/name@commit/path`, or the address. */
  name: text,
  size: count,
  validator: optional(text),
  /** Sums by which the whole file is found; the first is its SHA-256. */
  sums: listOf(text),
  whole: flag,
};
const recordParser = record(fields);
export type DownloadRecord = Parsed<typeof recordParser>;

/** A listing of the hub, for times without a network. */
const listingParser = record({ listing: text, revision: text, savedAt: count, body: text });
export type KeptListing = Parsed<typeof listingParser>;

/** A kept file with its record. */
export interface KeptDownload extends DownloadRecord {
  key: string;
  file: File;
}

const folderOf = async (create: boolean): Promise<FileSystemDirectoryHandle | undefined> =>
  (await privateFiles())?.getDirectoryHandle(FOLDER, { create }).catch(() => undefined);

const keyOf = async (name: string): Promise<string> =>
  (await sha256(new TextEncoder().encode(name).buffer)).slice(0, 40);

async function fileIn(folder: FileSystemDirectoryHandle, name: string): Promise<File | undefined> {
  return folder
    .getFileHandle(name)
    .then((handle) => handle.getFile())
    .catch(() => undefined);
}

async function writeJson(name: string, value: object): Promise<void> {
  const folder = await folderOf(true);
  const handle = await folder?.getFileHandle(name + RECORD, { create: true });
  const json = new TextEncoder().encode(JSON.stringify(value)).buffer;
  if (handle) await pour(await accessSink(handle), [json]);
}

/** Returns what `parse` makes of each record; one that is damaged or of another kind is left out. */
async function records<T>(
  folder: FileSystemDirectoryHandle,
  parse: (value: unknown, path: string) => T,
): Promise<{ key: string; value: T }[]> {
  const found: { key: string; value: T }[] = [];
  for await (const name of folder.keys()) {
    if (!name.endsWith(RECORD)) continue;
    const written = await fileIn(folder, name);
    try {
      const value = parse(parsedJson((await written?.text()) ?? ''), name);
      found.push({ key: name.slice(0, -RECORD.length), value });
    } catch {
      continue;
    }
  }
  return found;
}

/** Returns the kept file that `isWanted`, whole or not. */
async function keptWhere(
  isWanted: (kept: DownloadRecord) => boolean,
): Promise<KeptDownload | undefined> {
  const folder = await folderOf(false);
  if (folder === undefined) return undefined;
  for (const { key, value } of await records(folder, recordParser)) {
    const file = isWanted(value) ? await fileIn(folder, key) : undefined;
    // A whole file has its whole length.
    if (file && (!value.whole || file.size === value.size)) return { ...value, key, file };
  }
  return undefined;
}

/** Returns the whole file with this sum. */
export const keptBySum = (sum: string): Promise<KeptDownload | undefined> =>
  keptWhere(({ whole, sums }) => whole && sums.includes(sum));

/** Returns what is kept of a download. */
export const keptByName = (name: string): Promise<KeptDownload | undefined> =>
  keptWhere((kept) => kept.name === name);

/** Returns the file of a download, which is created if it does not exist; undefined if the browser keeps no files. */
export async function fileOf(name: string): Promise<FileSystemFileHandle | undefined> {
  const folder = await folderOf(true);
  return folder?.getFileHandle(await keyOf(name), { create: true });
}

export const writeRecord = async (kept: DownloadRecord): Promise<void> =>
  writeJson(await keyOf(kept.name), kept);

/** Removes a file with its record. */
async function dropKept(folder: FileSystemDirectoryHandle, key: string): Promise<void> {
  for (const millis of AGAIN_MILLIS) {
    await new Promise((resolve) => setTimeout(resolve, millis));
    try {
      await drop(folder, key);
      break;
    } catch (thrown) {
      if (millis === AGAIN_MILLIS.at(-1)) throw thrown;
    }
  }
  await drop(folder, key + RECORD);
}

/** Removes what is kept of a download. */
export async function dropDownload(name: string): Promise<void> {
  const folder = await folderOf(false);
  if (folder) await dropKept(folder, await keyOf(name));
}

export async function listDownloads(): Promise<DownloadInfo[]> {
  const folder = await folderOf(false);
  if (folder === undefined) return [];
  const listed: DownloadInfo[] = [];
  for (const { key, value } of await records(folder, recordParser)) {
    const { name, size, sums, whole } = value;
    const bytes = (await fileIn(folder, key))?.size ?? 0;
    listed.push({ name, size, bytes, complete: whole, sha256: whole ? sums[0] : undefined });
  }
  return listed.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Removes the downloads with these names, or whose names continue them; without names, all with the listings. Returns the names. */
export async function removeDownloads(names: readonly string[] | undefined): Promise<string[]> {
  const folder = await folderOf(false);
  if (folder === undefined) return [];
  const removed: string[] = [];
  for (const { key, value } of await records(folder, recordParser)) {
    const begins = (name: string): boolean =>
      value.name === name ||
      (value.name.startsWith(name) && /[@/]/.test(value.name[name.length] ?? ''));
    if (names !== undefined && !names.some(begins)) continue;
    await dropKept(folder, key);
    removed.push(value.name);
  }
  if (names === undefined)
    for (const { key } of await records(folder, listingParser)) await drop(folder, key + RECORD);
  return removed.sort();
}

/** Keeps a listing of the hub; `listing` is its address and `revision` what it lists. */
export async function keepListing(kept: KeptListing): Promise<void> {
  await writeJson(await keyOf(`${kept.listing} ${kept.revision}`), kept);
}

export async function keptListing(
  listing: string,
  revision: string,
): Promise<KeptListing | undefined> {
  const folder = await folderOf(false);
  const written =
    folder && (await fileIn(folder, (await keyOf(`${listing} ${revision}`)) + RECORD));
  try {
    return written && listingParser(parsedJson(await written.text()), listing);
  } catch {
    return undefined;
  }
}
