/** What a model leaves as, and where to. */
import type { NamedFile, Receipt } from '../protocol/reports.js';
import type { Call } from './call.js';
import type { FilesInput } from './inputs.js';

/** How a model leaves: what a model and a trainer have in common. */
export interface Exports {
  /** Written to a folder, a file or a stream as it is made. Gives the receipt. */
  exportTo: (target: ExportTarget, options?: ExportOptions) => Promise<Receipt | undefined>;
  /** As one Blob: a zip of a Hugging Face folder, or the single file. */
  export: (options?: ExportOptions) => Promise<Blob>;
  /** File by file, the receipt among them. */
  exportFiles: (options?: ExportOptions) => Promise<NamedFile[]>;
}

/** A folder as transformers loads it, one GGUF file as llama.cpp does, or one JSON file that any parser reads. */
export interface ExportOptions extends Call {
  /** 'peft' and 'gguf-adapter' are the adapter of a run alone. 'safetensors' */
  format?: 'safetensors' | 'gguf' | 'json' | 'peft' | 'gguf-adapter';
  /** Type of the matrices of a GGUF file; `'as-base'` is that of the base, and without a base that of the weights. 'as-base' */
  type?: GgufType;
  /** Of safetensors and JSON: as the weights are stored, or one for all. 'stored' */
  dtype?: 'stored' | 'f32' | 'bf16' | 'f16';
  /** The GGUF files that the model came from: metadata, tokenizer and untrained tensors are kept byte for byte. A new file; of a run that trains an adapter the files of its base */
  base?: FilesInput;
  /** Most bytes of one safetensors file. 1,900,000,000 */
  shardBytes?: number;
  /** The optimizer's state too. false */
  optimizer?: boolean;
  /** Groups and roles of the tensors, in the file. true */
  manifest?: boolean;
  /** Encode tensors anew whose blocks are of another type. false */
  requantise?: boolean;
  /** Values of a JSON file: numbers, or the bytes as base64, which alone holds NaN and infinity. 'numbers' */
  encoding?: 'numbers' | 'base64';
  /** Write NaN and infinity where the format can hold them. false */
  allowNonFinite?: boolean;
  /** Name of the file and of the model in it. 'model' */
  name?: string;
  /** What README.md, the model card, says beside what was measured. */
  card?: ModelCard;
}
export interface ModelCard {
  name?: string;
  /** As Hugging Face writes it: `apache-2.0`. */
  license?: string;
  /** The model that this one was made from. */
  baseModel?: string;
  /** The training data in words. */
  data?: string;
  /** Further text, in Markdown. */
  text?: string;
}
/** A folder takes all files; a file or a stream takes a single one, and of several a zip. */
export type ExportTarget = FileSystemDirectoryHandle | FileSystemFileHandle | WritableStream<Uint8Array>;
export type GgufType = 'as-base' | 'f32' | 'f16' | 'bf16' | 'q8_0' | 'q6_k' | 'q5_1' | 'q5_0' | 'q4_k' | 'q4_k_m' | 'q4_1' | 'q4_0';
