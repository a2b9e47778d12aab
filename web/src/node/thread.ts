/** The thread in which the package's worker runs: it has what the worker uses of a browser, as far as files need it. */
import { readFile } from 'node:fs/promises';
import { parentPort, workerData } from 'node:worker_threads';

import { MemoryBlob, MemoryFile, MemoryReader } from './memory-blobs.js';
import { withBlobs } from './remote-blobs.js';
import type { Reads } from './remote-blobs.js';

const platformFetch = globalThis.fetch;
/** Reads the core's file, which is next to the worker's script. */
async function fetchFile(input: string | URL, init?: RequestInit): Promise<Response> {
  const url = new URL(input);
  if (url.protocol !== 'file:') return platformFetch(input, init);
  return new Response(await readFile(url), { headers: { 'content-type': 'application/wasm' } });
}

const events = new EventTarget();
const heard = (type: string, fields: object): void =>
  void events.dispatchEvent(Object.assign(new Event(type), fields));

Object.assign(globalThis, {
  Blob: MemoryBlob,
  File: MemoryFile,
  FileReaderSync: MemoryReader,
  fetch: fetchFile,
  addEventListener: events.addEventListener.bind(events),
  postMessage: (message: unknown, { transfer }: { transfer: ArrayBuffer[] }): void =>
    parentPort?.postMessage(message, transfer),
});
// Until the script is loaded, an error ends the thread, and its starter is informed.
void import(new URL('./worker.js', import.meta.url).href).then(() => {
  process.on('uncaughtException', (error) => heard('error', { error }));
  process.on('unhandledRejection', (reason) => heard('unhandledrejection', { reason }));
  parentPort?.on('message', (message) =>
    heard('message', { data: withBlobs(message, workerData as Reads) }),
  );
});
