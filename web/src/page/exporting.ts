/** Exports of a model or of a trainer's weights. */
import { among, objectOf, positiveInteger, translate, truth, words } from './checks.js';
import type { Checks } from './checks.js';
import { badOption } from '../protocol/errors.js';
import { isOf } from '../protocol/brand.js';
import { json } from '../protocol/json.js';
import { target as parseTarget } from '../protocol/parse.js';
import { EXPORT_FORMATS, EXPORT_WORDS } from '../protocol/generated/exports.js';
import type { Ask, Reply } from '../protocol/protocol.js';
import { toSources } from './inputs.js';
import { signalOf } from './request-inputs.js';
import { optionsOf } from './given.js';
import type { LinkOptions } from './link.js';
import { inside } from './requests.js';
import type { ExportOptions, Exports, ExportTarget } from './export-options.js';

const EXPORT: Checks = {
  format: among(...EXPORT_WORDS),
  type: among('as-base', 'f32', 'f16', 'bf16', 'q8_0', 'q6_k', 'q5_1', 'q5_0', 'q4_k', 'q4_k_m', 'q4_1', 'q4_0'),
  dtype: among('stored', 'f32', 'bf16', 'f16'),
  encoding: among('numbers', 'base64'),
  shardBytes: positiveInteger,
  optimizer: truth,
  manifest: truth,
  requantise: truth,
  allowNonFinite: truth,
  name: words,
  card: inside({ name: words, license: words, baseModel: words, data: words, text: words }),
};

/** Options that only some formats have. */
const OWN = [...new Set(EXPORT_WORDS.flatMap((format) => EXPORT_FORMATS[format].options))];
const isGiven = (value: unknown): boolean => value !== undefined && value !== false;

type Written = Reply<'model.export'>;
type Place = 'zip' | 'files' | { target: ExportTarget };
type Exporting = (ask: Ask<'model.export'>, options: LinkOptions) => Promise<Reply<'model.export'>>;

/**
 * Returns the exports of the worker that `call` reaches. `usual` is used if the options do not say whether NaN and infinity are written. With
 * `adapting`, formats other than GGUF accept a base too, into which the adapter is merged.
 */
export function exportsOf(call: Exporting, usual?: boolean, adapting = false): Exports {
  const written = async (options: ExportOptions | undefined, to: Place): Promise<Written> =>
    exported(call, { ...objectOf(options ?? {}, 'options'), allowNonFinite: options?.allowNonFinite ?? usual }, to, adapting);
  return {
    exportTo: async (target, options) => (await written(options, { target })).receipt,
    export: async (options) => (await written(options, 'zip')).files[0]?.blob ?? new Blob(),
    exportFiles: async (options) => (await written(options, 'files')).files,
  };
}

/** Asks the worker to write the model: as one zip or file, as files, or to `target`, piece by piece. */
async function exported(call: Exporting, all: ExportOptions, to: Place, adapting: boolean): Promise<Written> {
  const { base, signal: own, onProgress, ...given } = optionsOf(all, 'the export');
  const signal = signalOf(own, base);
  const options = translate(given, EXPORT, '');
  const { format = 'safetensors' } = given;
  // Only an adapter is merged into a base that is a folder.
  const misplaced =
    base !== undefined && !adapting && EXPORT_FORMATS[format].ending === ''
      ? 'base'
      : OWN.find((key) => isGiven(all[key]) && !EXPORT_FORMATS[format].options.includes(key));
  if (misplaced !== undefined) throw badOption(misplaced, `none with format '${format}'`, all[misplaced]);
  const { moved, ...where } = typeof to === 'object' ? aimed(to.target) : { container: to };
  const ask = { options: json(options), base: base && (await toSources(base, 'base', signal)), ...where };
  return call(ask, { signal, onProgress, ...moved });
}

/** Returns a caller's target as a request names it, and how it is passed to the worker: a stream can be transferred only once. */
export function aimed(given: ExportTarget): { container: 'files'; target: ExportTarget; moved: LinkOptions } {
  try {
    const target = parseTarget(given, 'target');
    return { container: 'files', target, moved: isOf(target, 'WritableStream') ? { transfer: [target], again: () => false } : {} };
  } catch {
    throw badOption('target', 'a FileSystemDirectoryHandle, a FileSystemFileHandle or a WritableStream', given);
  }
}
