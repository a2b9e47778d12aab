/** Options of exports: the format of the exported model and its target. */
import type { ExportFormat } from '../protocol/generated/exports.js';
import type { NamedFile, Receipt } from '../protocol/reports.js';
import type { Call } from './call.js';
import type { FilesInput } from './inputs.js';

/** Exports, which `Model` and `Trainer` have in common. */
export interface Exports {
  /** Writes the export to a folder, a file or a stream while it is produced. Resolves to its receipt. */
  exportTo: (target: ExportTarget, options?: ExportOptions) => Promise<Receipt | undefined>;
  /**
   * Returns the export as one file: `model.zip` (`application/zip`) for a Hugging Face folder, `adapter.zip` for a PEFT folder, or the single file, such
   * as `model.gguf` or `adapter.gguf` (`application/octet-stream`) and `model.state_dict.json` (`application/json`). The option `name` replaces the
   * first part of the name.
   */
  export: (options?: ExportOptions) => Promise<File>;
  /** Returns the export file by file, including the receipt. */
  exportFiles: (options?: ExportOptions) => Promise<NamedFile[]>;
}

/** Options of an export: a folder that transformers loads, one GGUF file that llama.cpp loads, or one JSON file that any parser reads. */
export interface ExportOptions extends Call {
  /** Format of the export; 'peft' and 'gguf-adapter' contain only the adapter of a run. Default: 'safetensors'. */
  format?: ExportFormat | undefined;
  /** Type of the matrices in a GGUF file; 'as-base' is the type that the base has, or that of the weights if there is no base. Default: 'as-base'. */
  type?: GgufType | undefined;
  /** For safetensors and JSON: the type in which the weights are stored, or one type for all of them. Default: 'stored'. */
  dtype?: 'stored' | 'f32' | 'bf16' | 'f16' | undefined;
  /**
   * GGUF files that the model came from; their metadata, tokenizer and untrained tensors are kept byte for byte. By default the file is written from scratch;
   * a run that trains an adapter uses the files of its base.
   */
  base?: FilesInput | undefined;
  /** Maximum number of bytes in one safetensors file. Default: 1,900,000,000. */
  shardBytes?: number | undefined;
  /** Includes the optimizer's state. Default: false. */
  optimizer?: boolean | undefined;
  /** Includes the groups and roles of the tensors in the file. Default: true. */
  manifest?: boolean | undefined;
  /** Encodes tensors again if their blocks have another type. Default: false. */
  requantise?: boolean | undefined;
  /** Encoding of the values in a JSON file: numbers, or their bytes in base64. Only base64 can represent NaN and infinity. Default: 'numbers'. */
  encoding?: 'numbers' | 'base64' | undefined;
  /** Writes NaN and infinity if the format can represent them. Default: false. */
  allowNonFinite?: boolean | undefined;
  /**
   * Name of the file and of the model in it. Each control or bidi character becomes `-`, and 120 bytes of UTF-8 are kept. Default: 'model'.
   */
  name?: string | undefined;
  /** Statements for the model card, README.md, in addition to the measurements. */
  card?: ModelCard | undefined;
}
/** Statements for the model card of an export. */
export interface ModelCard {
  /** Name of the model. Default: that of the model it was made from. */
  name?: string | undefined;
  /** Identifier of the licence as Hugging Face writes it, such as `apache-2.0`. */
  license?: string | undefined;
  /** The model that this one was made from. */
  baseModel?: string | undefined;
  /** Description of the training data. */
  data?: string | undefined;
  /** Further text, in Markdown. */
  text?: string | undefined;
}
/** A folder receives all files; a file or a stream receives the single file, or a zip of several. */
export type ExportTarget =
  FileSystemDirectoryHandle | FileSystemFileHandle | WritableStream<Uint8Array>;
/** Type of the matrices in a GGUF file. */
export type GgufType =
  | 'as-base'
  | 'f32'
  | 'f16'
  | 'bf16'
  | 'q8_0'
  | 'q6_k'
  | 'q5_1'
  | 'q5_0'
  | 'q4_k'
  | 'q4_k_m'
  | 'q4_1'
  | 'q4_0';
