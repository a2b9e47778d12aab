/** Sorts files that are dropped anywhere on the page by where they belong. */

export interface Sorted {
  model: File[];
  data: File[];
  runs: File[];
  /** Files whose names do not say what they are. */
  unknown: File[];
  /** Files of a model's repository that are neither part of the model nor data. */
  left: File[];
}

const RUN = /\.tabtune$/i;
/** Files that only the folder of a checkpoint has. */
const OF_RUN = /^optimizer\.safetensors$|\.state_dict\.json$/i;
const WEIGHTS = /\.(gguf|safetensors)$/i;
/** The other files of a model; of its JSON files, those that every library gives the same name. */
const OF_MODEL =
  /^((generation_|adapter_|preprocessor_|processor_)?config|tokenizer(_config)?|special_tokens_map|added_tokens|vocab|chat_template|model\.safetensors\.index)\.json$|^(merges|vocab)\.txt$|\.(model|jinja|tiktoken|safetensors\.index\.json)$/i;
const DATA = /\.(txt|text|md|markdown|jsonl|ndjson|json|csv|tsv|parquet|gz|tokens)$/i;
/** Files that repositories of models have as well. */
const ABOUT = /^(README|LICEN[CS]E|USE_POLICY|NOTICE|CHANGELOG)\b/i;

/** `isFolder` says that these are all files of a folder: other JSON files of a model's are neither part of it nor data. */
export function sorted(files: readonly File[], isFolder = false): Sorted {
  const sorts: Sorted = { model: [], data: [], runs: [], unknown: [], left: [] };
  const has = (kind: RegExp): boolean => files.some(({ name }) => kind.test(name));
  // All files of a checkpoint's folder belong to it.
  if (has(OF_RUN)) return { ...sorts, runs: [...files] };
  const ofModel = has(WEIGHTS) || has(/^config\.json$/i);
  for (const file of files) {
    const { name } = file;
    const kind = RUN.test(name)
      ? 'runs'
      : WEIGHTS.test(name) || OF_MODEL.test(name)
        ? 'model'
        : ofModel && (ABOUT.test(name) || (isFolder && /\.json$/i.test(name)))
          ? 'left'
          : DATA.test(name)
            ? 'data'
            : 'unknown';
    sorts[kind].push(file);
  }
  return sorts;
}
