/** Files of a repository that an opening takes. */
import { escaped, fault } from '../protocol/errors.js';

export interface HubFile {
  path: string;
  size: number;
  /** SHA-256, or the id as a blob of git, which is shorter. */
  sum: string | undefined;
}

/** The wish of a caller: all of a repository, or a file or folder in it. */
export interface Wish {
  /** The repository as it is named in messages. */
  subject: string;
  path: string;
  quant?: string | undefined;
}

/** Files that belong to every model: configuration, tokenizer, templates, licence. */
const COMPANIONS =
  /^((generation_|tokenizer_)?config\.json|tokenizer\.(json|model(\.v3)?)|special_tokens_map\.json|added_tokens\.json|vocab\.(json|txt)|merges\.txt|tekken\.json|spiece\.model|sentencepiece\.bpe\.model|qwen\.tiktoken|chat_template\.json|(additional_chat_templates\/)?[^/]+\.jinja|license(\.\w+)?)$/i;
const SHARD = /^model-\d{5}-of-\d{5}\.safetensors$/;
const ADAPTER = ['adapter_config.json', 'adapter_model.safetensors'];
/** Types of GGUF files that are taken without being named. */
const QUANTS = ['Q4_K_M', 'Q8_0'];
/** Maximum number of files that a message lists. */
const LISTED = 12;

const DATA = /\.(jsonl|json|csv|tsv|parquet|txt)(\.gz)?$/i;
/** Descriptions of data, which are not data. */
const ABOUT =
  /(^|\/)(dataset_infos?|dataset_dict|state|config|croissant)\.json$|(^|\/)(readme|license)/i;

/** Returns the refusal of a repository without what is wanted, which names what there is. */
function without({ subject }: Wish, expected: string, files: readonly HubFile[]): Error {
  const names = files.slice(0, LISTED).map(({ path, size }) => `${path} (${size} bytes)`);
  const more = files.length > LISTED ? ` and ${files.length - LISTED} more` : '';
  const found = names.length === 0 ? 'no files' : `${names.join(', ')}${more}`;
  return fault('hub.files', { subject: escaped(subject), expected, found: escaped(found) });
}

/** Returns the files below the path of a wish, by their paths in it, or undefined if it names a file. */
function below({ path }: Wish, files: readonly HubFile[]): { file: HubFile; inner: string }[] {
  const folder = path === '' ? '' : `${path}/`;
  return files
    .filter((file) => file.path.startsWith(folder))
    .map((file) => ({ file, inner: file.path.slice(folder.length) }));
}

/** Groups the parts of GGUF files. */
function ggufs(files: readonly HubFile[]): Map<string, HubFile[]> {
  const groups = new Map<string, HubFile[]>();
  for (const file of files) {
    if (!/\.gguf$/i.test(file.path) || /(^|\/)mmproj/i.test(file.path)) continue;
    const name = file.path.replace(/(-\d{5}-of-\d{5})?\.gguf$/i, '');
    groups.set(name, [...(groups.get(name) ?? []), file]);
  }
  return groups;
}

const isQuant = (name: string, quant: string): boolean =>
  `-${name.toUpperCase()}-`.split(/[-./]/).includes(quant.toUpperCase());

/** Chooses one GGUF file, or the parts of one. */
function ggufOf(wish: Wish, files: readonly HubFile[]): HubFile[] | undefined {
  const groups = ggufs(files);
  if (groups.size === 0) return undefined;
  const all = [...groups.values()].flat();
  const { quant } = wish;
  const of = (word: string): HubFile[][] =>
    [...groups].filter(([name]) => isQuant(name, word)).map(([, parts]) => parts);
  const [first, ...others] =
    quant !== undefined
      ? of(quant)
      : groups.size === 1
        ? [...groups.values()]
        : (QUANTS.map(of).find((found) => found.length > 0) ?? []);
  if (first === undefined || others.length > 0)
    throw without(wish, `one GGUF file of the type ${quant ?? QUANTS.join(' or ')}`, all);
  return first;
}

/** Returns the files of a model or an adapter. */
export function modelFiles(wish: Wish, files: readonly HubFile[]): HubFile[] {
  const named = files.find(({ path }) => path === wish.path);
  if (named) {
    const name = named.path.replace(/-\d{5}-of-\d{5}\.gguf$/i, '');
    return ggufs(files).get(name) ?? [named];
  }
  const inside = below(wish, files);
  if (inside.length === 0)
    throw without(wish, wish.path === '' ? 'files' : escaped(wish.path), files);
  const has = (wanted: string): HubFile | undefined =>
    inside.find(({ inner }) => inner === wanted)?.file;
  const all = inside.map(({ file }) => file);
  const one = has('model.safetensors');
  const index = has('model.safetensors.index.json');
  const shards = inside.filter(({ inner }) => SHARD.test(inner)).map(({ file }) => file);
  const adapter = ADAPTER.flatMap((name) => has(name) ?? []);
  const weights =
    wish.quant !== undefined
      ? undefined
      : one
        ? [one]
        : index && shards.length > 0
          ? [index, ...shards]
          : adapter.length === ADAPTER.length
            ? adapter
            : undefined;
  if (weights === undefined) {
    const gguf = ggufOf(wish, all);
    if (gguf) return gguf;
    throw without(
      wish,
      wish.quant === undefined ? 'model.safetensors and no GGUF file' : 'GGUF file',
      all,
    );
  }
  const companions = inside.filter(({ inner }) => COMPANIONS.test(inner));
  return [...companions.map(({ file }) => file), ...weights];
}

/** Returns the files of a data set: those of one form, and of the training part where the names of files state it. */
export function dataFiles(
  wish: Wish,
  files: readonly HubFile[],
): { taken: HubFile[]; left: HubFile[] } {
  const named = files.find(({ path }) => path === wish.path);
  if (named && DATA.test(named.path)) return { taken: [named], left: [] };
  const known = below(wish, files)
    .map(({ file }) => file)
    .filter(({ path }) => DATA.test(path) && !ABOUT.test(path));
  const forms = new Set(known.map(({ path }) => DATA.exec(path)?.[1]?.toLowerCase()));
  if (forms.size !== 1)
    throw without(
      wish,
      'data files of one form (.jsonl, .json, .csv, .tsv, .parquet, .txt)',
      files,
    );
  const training = known.filter(({ path }) => /(^|[/_.-])train/i.test(path));
  const taken = training.length > 0 ? training : known;
  return { taken, left: known.filter((file) => !taken.includes(file)) };
}
