/** Destination for the bytes of one file: a file that the user picked, one of the origin's private files, or a stream. */

export interface Sink {
  write(bytes: ArrayBuffer): Promise<unknown>;
  close(): Promise<unknown>;
  /** Gives up: the bytes written so far do not become the file. */
  abort(): Promise<unknown>;
}

/** Synchronous access to a file; available in dedicated workers, but not declared by the DOM library. */
interface AccessHandle {
  truncate(size: number): void;
  write(bytes: ArrayBuffer, options: { at: number }): number;
  flush(): void;
  close(): void;
}

/** Opens a sink with synchronous access, which only the origin's private files have. */
export async function accessSink(handle: FileSystemFileHandle): Promise<Sink> {
  const open: unknown = Reflect.get(handle, 'createSyncAccessHandle');
  if (typeof open !== 'function')
    throw new DOMException('no synchronous access to files here', 'NotSupportedError');
  const access = (await open.call(handle)) as AccessHandle;
  access.truncate(0);
  let at = 0;
  const end = (last: () => void): void => {
    try {
      last();
    } finally {
      access.close();
    }
  };
  return {
    write: async (bytes) => {
      if (access.write(bytes, { at }) !== bytes.byteLength)
        throw new DOMException(
          'the file system took fewer bytes than it was given',
          'QuotaExceededError',
        );
      at += bytes.byteLength;
    },
    close: async () => end(() => access.flush()),
    abort: async () => end(() => access.truncate(0)),
  };
}

/** Opens a sink for a file; if the browser supports it, the file is replaced only when the sink is closed. */
export const fileSink = (handle: FileSystemFileHandle): Promise<Sink> =>
  'createWritable' in handle ? handle.createWritable() : accessSink(handle);

export async function pour(
  sink: Sink,
  pieces: AsyncIterable<ArrayBuffer> | Iterable<ArrayBuffer>,
  until: <T>(work: Promise<T>) => Promise<T> = (work) => work,
): Promise<void> {
  try {
    for await (const piece of pieces) await until(sink.write(piece));
    await until(sink.close());
  } catch (thrown) {
    await until(sink.abort()).catch(() => undefined);
    throw thrown;
  }
}

/** Removes a file, if it exists. */
export async function drop(folder: FileSystemDirectoryHandle, name: string): Promise<void> {
  await folder.removeEntry(name).catch((thrown: unknown) => {
    if (!(thrown instanceof DOMException && thrown.name === 'NotFoundError')) throw thrown;
  });
}
