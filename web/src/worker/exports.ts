/** Delivers file streams from the core piece by piece: to files, to a stream, or gathered into Blobs, which the browser can move to disk. */
import { unlessAborted } from '../protocol/abort.js';
import { isOf } from '../protocol/brand.js';
import { aborted, fault, sinkFault, TabtuneError } from '../protocol/errors.js';
import type { Ask, Reply } from '../protocol/protocol.js';
import type { NamedFile, OnProgress } from '../protocol/reports.js';
import { progressOf } from './progress.js';
import { exactBuffer } from './storage/chunks.js';
import { drop, fileSink, pour } from './storage/sinks.js';
import type { Sink } from './storage/sinks.js';
import { parsed } from './wasm.js';
import type { FileStream } from './wasm.js';
import { Zip } from './zip.js';

/** Signal and progress callback of an export. */
interface ExportCall {
  signal: AbortSignal;
  onProgress: OnProgress;
}
/** Opens the sink for the file of this name. */
type Open = (name: string) => Promise<Sink>;

/** Name of the file that is written last: a folder without it is incomplete. */
const RECEIPT = 'tabtune.receipt.json';
/** Maximum size of a zip file in bytes without the extension for larger ones. */
const ZIP_BYTES = 2 ** 32;

const ignored = async (): Promise<void> => undefined;
const NOWHERE: Sink = { write: ignored, close: ignored, abort: ignored };

function blobSink(name: string, done: NamedFile[]): Sink {
  const pieces: Blob[] = [];
  return {
    ...NOWHERE,
    write: async (bytes) => pieces.push(new Blob([bytes])),
    close: async () => done.push({ name, blob: new Blob(pieces) }),
  };
}

/** Passes each piece to the page, which answers once the caller's stream has taken it; an empty message closes the stream. */
function portSink(port: MessagePort): Sink {
  const passed = (piece?: ArrayBuffer): Promise<void> =>
    new Promise((resolve, reject) => {
      port.onmessage = ({ data }) =>
        data === true ? resolve() : reject(fault('sink.write', { found: 'the stream failed' }));
      port.postMessage(piece, piece ? [piece] : []);
    });
  return { write: passed, close: () => passed(), abort: ignored };
}

/** Opens the file of a name in a folder; the name may begin with a folder, which is created. */
async function fileIn(
  folder: FileSystemDirectoryHandle,
  name: string,
): Promise<FileSystemFileHandle> {
  const [above, last] = name.split('/');
  if (above === undefined || last === undefined)
    return folder.getFileHandle(name, { create: true });
  return (await folder.getDirectoryHandle(above, { create: true })).getFileHandle(last, {
    create: true,
  });
}

/** Writes the files of `stream` to the requested target, and ends it. An aborted export leaves no receipt, and no file that looks complete. */
export async function delivered(
  stream: FileStream,
  { container, target }: Pick<Ask<'model.export'>, 'container' | 'target'>,
  { signal, onProgress }: ExportCall,
): Promise<Reply<'model.export'>> {
  const until = <T>(work: Promise<T>): Promise<T> => unlessAborted(work, signal);
  const listed = parsed.files(stream.files());
  const total = listed.reduce((sum, file) => sum + file.bytes, 0);
  const done: NamedFile[] = [];
  let loaded = 0;

  async function* pieces({
    name,
    bytes,
  }: {
    name: string;
    bytes: number;
  }): AsyncGenerator<ArrayBuffer> {
    for (let got = 0; got < bytes;) {
      if (signal.aborted) throw aborted('the export');
      const piece = await stream.nextChunk();
      if (!piece?.byteLength || got + piece.byteLength > bytes)
        throw fault('export.stream', { subject: name, expected: bytes, found: got });
      got += piece.byteLength;
      loaded += piece.byteLength;
      yield exactBuffer(piece);
      onProgress(progressOf('export', name, loaded, total));
    }
  }
  const opened = async (opening: Promise<Sink>): Promise<Sink> => {
    try {
      return await until(opening);
    } catch (thrown) {
      // A file that opens late would stay locked.
      opening.then((late) => late.abort()).catch(ignored);
      throw thrown;
    }
  };
  const each = async (open: Open): Promise<void> => {
    for (const file of listed) await pour(await opened(open(file.name)), pieces(file), until);
  };

  /** Writes everything into one file: the only one, or else a zip. */
  const asOne = async (place: Open): Promise<void> => {
    const [first, second] = listed.filter(({ name }) => name !== RECEIPT);
    const single = second ? undefined : first;
    if (!single && total >= ZIP_BYTES - 2 ** 20)
      throw fault('export.zip-size', { found: total }, { need: total, have: ZIP_BYTES });
    const out = await opened(place(single?.name ?? 'model.zip'));
    try {
      if (single) {
        await each(async (name) =>
          name === RECEIPT ? NOWHERE : { ...NOWHERE, write: (bytes) => out.write(bytes) },
        );
      } else {
        const zip = new Zip(out);
        await each(zip.open);
        await until(zip.end());
      }
      await until(out.close());
    } catch (thrown) {
      await until(out.abort()).catch(ignored);
      throw thrown;
    }
  };

  try {
    if (isOf(target, 'MessagePort')) await asOne(async () => portSink(target));
    else if (target?.kind === 'file') await asOne(() => fileSink(target));
    else if (target) {
      await drop(target, RECEIPT);
      await each(async (name) => fileSink(await fileIn(target, name)));
    } else await (container === 'zip' ? asOne : each)(async (name) => blobSink(name, done));
    return { files: done, receipt: parsed.receipt(stream.receipt()) };
  } catch (thrown) {
    // The core throws plain objects; all other errors come from the target.
    if (
      !(thrown instanceof Error) ||
      thrown instanceof TabtuneError ||
      thrown instanceof WebAssembly.RuntimeError
    )
      throw thrown;
    throw sinkFault(thrown);
  } finally {
    stream.free();
  }
}
