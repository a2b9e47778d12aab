/** Exports of a model or of a trainer's weights. */
import { boolean, objectOf, oneOf, positiveInteger, string, translate } from './checks.js';
import type { Checks } from './checks.js';
import { badOption, sinkFault } from '../protocol/errors.js';
import { isOf } from '../protocol/brand.js';
import { plainName } from '../protocol/file-names.js';
import { plain } from '../protocol/plain.js';
import { buffer, missing, target as parseTarget } from '../protocol/parse.js';
import { EXPORT_FORMATS, EXPORT_WORDS } from '../protocol/generated/exports.js';
import type { Ask, Reply } from '../protocol/protocol.js';
import type { NamedFile } from '../protocol/reports.js';
import { toSources } from './inputs.js';
import { signalOf } from './request-inputs.js';
import { optionsOf, ownFields } from './given.js';
import type { LinkOptions } from './link.js';
import { inside } from './requests.js';
import type { ExportOptions, Exports, ExportTarget } from './export-options.js';

const EXPORT: Checks = {
  format: oneOf(...EXPORT_WORDS),
  type: oneOf(
    'as-base',
    'f32',
    'f16',
    'bf16',
    'q8_0',
    'q6_k',
    'q5_1',
    'q5_0',
    'q4_k',
    'q4_k_m',
    'q4_1',
    'q4_0',
  ),
  dtype: oneOf('stored', 'f32', 'bf16', 'f16'),
  encoding: oneOf('numbers', 'base64'),
  shardBytes: positiveInteger,
  optimizer: boolean,
  manifest: boolean,
  requantise: boolean,
  allowNonFinite: boolean,
  name: (value, path) => plainName(String(string(value, path))),
  card: inside({ name: string, license: string, baseModel: string, data: string, text: string }),
};

const TARGETS = 'a FileSystemDirectoryHandle, a FileSystemFileHandle or a WritableStream';
/** Options that only some formats have. */
const OWN = [...new Set(EXPORT_WORDS.flatMap((format) => EXPORT_FORMATS[format].options))];
const isGiven = (value: unknown): boolean => value !== undefined && value !== false;

type Written = Reply<'model.export'>;
type Place = Pick<Ask<'model.export'>, 'container' | 'target'>;
/** Work that writes to a place; the options say how the place is passed to the worker. */
type Work<T> = (place: Place, moved: LinkOptions) => Promise<T>;
type Reaching = (work: Work<Written>) => Promise<Written>;
type Exporting = (ask: Ask<'model.export'>, options: LinkOptions) => Promise<Reply<'model.export'>>;

/**
 * Returns the exports of the worker that `call` reaches. `usual` is used if the options do not say whether NaN and infinity are written. With
 * `adapting`, formats other than GGUF accept a base too, into which the adapter is merged.
 */
export function exportsOf(call: Exporting, usual?: boolean, adapting = false): Exports {
  const written = async (options: ExportOptions = {}, to: Reaching): Promise<Written> => {
    objectOf(options, 'options');
    const { allowNonFinite = usual } = ownFields(options);
    return exported(call, { ...options, allowNonFinite }, to, adapting);
  };
  return {
    exportTo: async (target, options) =>
      (await written(options, (work) => reaching(target, work))).receipt,
    export: async (options) => {
      const { files } = await written(options, (work) => work({ container: 'zip' }, {}));
      return asFile(files[0], options);
    },
    exportFiles: async (options) =>
      (await written(options, (work) => work({ container: 'files' }, {}))).files,
  };
}

/** MIME types by the ending of a name. */
const TYPES: Readonly<Record<string, string>> = {
  zip: 'application/zip',
  json: 'application/json',
};

/** Returns the one file of an export. A zip has the name that was asked for; by default that of an adapter differs from that of a model. */
function asFile(file: NamedFile | undefined, options: ExportOptions = {}): File {
  const { format, name } = ownFields(options);
  const { name: given, blob } = file ?? { name: 'model.zip', blob: new Blob() };
  const ending = given.replace(/^.*\./, '');
  const own = name ?? (EXPORT_FORMATS[format ?? 'safetensors'].adapter ? 'adapter' : 'model');
  const full = ending === 'zip' ? `${plainName(own).replace(/[/\\]/g, '-')}.zip` : given;
  return new File([blob], full, { type: TYPES[ending] ?? 'application/octet-stream' });
}

/** Asks the worker to write the model to a place, piece by piece. */
async function exported(
  call: Exporting,
  given: ExportOptions,
  to: Reaching,
  adapting: boolean,
): Promise<Written> {
  const all = optionsOf(given, 'the export');
  const { base, signal: ofCall, onProgress, ...rest } = all;
  const signal = signalOf(ofCall, base);
  const options = translate(rest, EXPORT, '', ['base', 'signal', 'onProgress']);
  const { format = 'safetensors' } = all;
  // Only an adapter is merged into a base that is a folder.
  const misplaced =
    base !== undefined && !adapting && EXPORT_FORMATS[format].ending === ''
      ? 'base'
      : OWN.find((key) => isGiven(all[key]) && !EXPORT_FORMATS[format].options.includes(key));
  if (misplaced !== undefined)
    throw badOption(misplaced, `none with format '${format}'`, all[misplaced]);
  return to(async (place, moved) => {
    const ask = {
      options: plain(options, 'options'),
      base: base === undefined ? undefined : await toSources(base, 'base', signal),
      ...place,
    };
    return call(ask, { signal, onProgress, ...moved });
  });
}

/** Runs work that writes to a target, which the caller gave as the option `path`. */
export async function reaching<T>(given: ExportTarget, work: Work<T>, path = 'target'): Promise<T> {
  if (isOf(given, 'WritableStream')) {
    if (given.locked) throw badOption(path, 'one that is not locked', given);
    return pumping(given, work);
  }
  let target: Place['target'];
  try {
    target = parseTarget(given, 'target');
  } catch {
    throw badOption(path, TARGETS, given);
  }
  return work({ container: 'files', target }, {});
}

/**
 * Runs work whose bytes this page writes into the caller's stream one piece at a time: a stream that was transferred to the worker would answer before
 * the caller's has taken a piece, and report its errors late or never. If the work fails, the stream is aborted.
 */
async function pumping<T>(stream: WritableStream, work: Work<T>): Promise<T> {
  const writer = stream.getWriter();
  const { port1: port, port2: target } = new MessageChannel();
  let refused: { thrown: unknown } | undefined;
  const take = async (data: unknown): Promise<void> => {
    try {
      const piece = missing(buffer)(data, 'a piece');
      await (piece ? writer.write(new Uint8Array(piece)) : writer.close());
    } catch (thrown) {
      refused = { thrown };
    }
    port.postMessage(refused === undefined);
  };
  port.onmessage = ({ data }) => void take(data);
  try {
    return await work({ container: 'files', target }, { transfer: [target], again: () => false });
  } catch (thrown) {
    const error = refused ? sinkFault(refused.thrown) : thrown;
    // Not awaited: a stalled stream may never answer.
    writer.abort(error).catch(() => undefined);
    throw error;
  } finally {
    writer.releaseLock();
    port.close();
  }
}
