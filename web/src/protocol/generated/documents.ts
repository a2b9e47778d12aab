// Made by npm run generate; not for editing.
/** Documents of the core, under their own names. */
import type { Json } from '../json.js';

/** Model that training started from. */
export interface Base {
  /** Name that its files state, else the name of the first file without its ending; empty in checkpoints that do not state it. */
  name?: string | undefined;
  /** `hf_folder` or `gguf`. */
  format: string;
  /** The weight files. */
  files: BaseFile[];
  /** Digest of its weights, where it is known. */
  weights_digest?: string | undefined;
  /** Repository that its files came from, if they came from one. */
  hub?: HubOrigin | undefined;
  /** Files of an adapter that was merged into it before it was trained, if there was one. */
  merged_adapter?: BaseFile[] | undefined;
  /** Extent to which the last resume compared its files, if it did not compare all of them. */
  verified?: VerifyPolicy | undefined;
}

/** A file of a `Base`. */
export interface BaseFile {
  /** File name. */
  name: string;
  /** Size in bytes. */
  bytes: number;
  /** SHA-256 of the part that lists its tensors: the length word and header of a safetensors file, everything before the data of a GGUF file. Absent in checkpoints that do not state it. */
  header_sha256?: string | undefined;
  /** SHA-256 of the whole file, where all of it was read. */
  sha256?: string | undefined;
  /** SHA-256 of each piece of 8 MiB, the last one shorter; present if an adapter is trained on this base. */
  pieces?: string[] | undefined;
}

/** Result of a comparison. */
export type CheckResult = 'verified' | 'absent' | 'subset' | 'skipped' | 'differs';

/** Formats that one artifact can be read from and written in, with the reasons. */
export interface Contract {
  /** Family of the model. */
  model_family: string;
  /** Revision of the model. */
  revision: string;
  /** Digest of its state, if all values were read. */
  state_digest?: string | undefined;
  /** A row for each container, always the same ones in the same order. */
  surfaces: ContractRow[];
  /** Digest of everything above. */
  contract_digest: string;
}

/** Degree to which something can be done, with the reason; a cell of a `ContractRow`. */
export interface ContractCell {
  /** Degree of support. */
  support: ContractSupport;
  /** Reason, as a sentence. */
  reason: string;
}

/** One container in a `Contract`. */
export interface ContractRow {
  /** Name of the container. */
  surface: string;
  /** Support for reading it. */
  import: ContractCell;
  /** Support for writing this artifact to it. */
  export: ContractCell;
  /** Support for writing this artifact to it and reading the result. */
  round_trip: ContractCell;
}

/** Degree to which something can be done, in a `ContractCell`. */
export type ContractSupport = 'supported' | 'lossy' | 'unsupported';

/** A tensor that was written in another type than it had, or as the sum with an adapter. */
export interface Conversion {
  /** Name in the file that was written. */
  tensor: string;
  /** Previous dtype: a word of safetensors, or `GGML:<type>`. */
  from: string;
  /** dtype in the file. */
  to: string;
  /** Largest difference between a finite value and the value that a reader of the file gets for it, both as f32. */
  max_abs_error: number;
  /** Number of values that were NaN or infinite before. */
  non_finite: number;
  /** For a tensor that an adapter was merged into, the share of the change that is left: 1 − ‖written − exact‖ / ‖change‖, 2-norms of all values. */
  survival?: number | undefined;
}

/** An evaluation. */
export type EvaluationRecord = ReceiptEvaluation | number;

/** Commit of a repository of the Hugging Face Hub, or of a mirror, that files came from. */
export interface HubOrigin {
  /** `owner/name`. */
  repo: string;
  /** Branch, tag or commit that was asked for, if it is known. */
  revision?: string | undefined;
  /** The commit: 40 hexadecimal digits. */
  commit: string;
}

/** The receipt of an import or export: equal inputs, settings and version give an equal `receipt_digest`.  ``` use tabtune::state::{ModelIoArtifactReceipt, Operation};  let receipt = ModelIoArtifactReceipt::new(Operation::Convert).seal()?; let text = receipt.to_text()?; assert_eq!(ModelIoArtifactReceipt::read(&text, "tabtune.receipt.json")?, receipt); # Ok::<(), tabtune::Error>(()) ``` */
export interface Receipt {
  /** Version of the format, always 1. */
  version: number;
  /** Operation that was performed. */
  operation: ReceiptOperation;
  /** Program that performed it. */
  tool: ReceiptTool;
  /** Model that the result started from. */
  base?: Base | undefined;
  /** Record of the training. */
  training?: ReceiptTraining | undefined;
  /** Files that were read. */
  inputs: ReceiptFile[];
  /** Files that were written, without the receipt itself. */
  outputs: ReceiptFile[];
  /** Digests of the output. */
  digests: StatedDigests;
  /** Lists of the tensors by their treatment. */
  tensors: ReceiptTensors;
  /** Lists of the groups by their treatment. */
  groups: ReceiptGroups;
  /** Tensors that were written in another type, with the errors of the conversion. */
  conversions: Conversion[];
  /** Comparisons that were made during the operation. */
  checks: ReceiptCheck[];
  /** Warnings of the operation. */
  warnings: ReceiptWarning[];
  /** Digest of the compatibility contract. */
  contract_digest?: string | undefined;
  /** Digest of all fields except this one and the two below; absent until the receipt is sealed. */
  receipt_digest?: string | undefined;
  /** Time of the operation, if the caller states it. */
  time?: string | undefined;
  /** Device of the operation, if the caller states it. */
  device?: string | undefined;
}

/** Result of a comparison that was made during the operation. */
export interface ReceiptCheck {
  /** Name of the values that were compared. */
  name: string;
  /** Result: `verified`, `absent`, `subset` or `skipped`. */
  result: CheckResult;
}

/** Data that a model was trained on. */
export interface ReceiptData {
  /** Name that the user gave them. */
  name: string;
  /** SHA-256 of its tokens, as in checkpoints. */
  digest: string;
  /** Number of tokens to be trained on, if it is known. */
  tokens?: number | undefined;
  /** Number of steps that were made with other data before these, if there were any. */
  steps_before?: number | undefined;
}

/** Result of an evaluation, with the weights and data that it belongs to. */
export interface ReceiptEvaluation {
  /** Mean over counted targets, in nats. */
  loss: number;
  /** Number of completed steps of the weights. */
  step: number;
  /** SHA-256 of the data that were evaluated: those of the run, if a part of them is kept back, or other data. */
  data_digest: string;
}

/** A file that was read or written. */
export interface ReceiptFile {
  /** Purpose: `weights`, `optimizer`, `delta`, `adapter`, `index`, `config`, `tokenizer`, `template`, `card`, `manifest` or `other`. */
  role: string;
  /** File name, without a path. */
  name: string;
  /** Ending of its name: `safetensors`, `gguf`, `json`, … */
  format: string;
  /** Size in bytes. */
  bytes: number;
  /** SHA-256 of the whole file; absent where not all of it was read. */
  sha256?: string | undefined;
}

/** Lists of groups by their treatment. */
export interface ReceiptGroups {
  /** Groups that were taken. */
  admitted: string[];
  /** Groups that were left out. */
  dropped: string[];
}

/** Measured losses in nats. */
export interface ReceiptLosses {
  /** Loss of the last step. */
  last?: number | undefined;
  /** Result of an evaluation of the run's weights after its last step, on these data. */
  evaluation?: EvaluationRecord | undefined;
  /** Description of what happened to the weights after they were evaluated, for example `rounding to BF16`; absent if the values in the files are those that were evaluated. */
  evaluation_before?: string | undefined;
}

/** Operation that a receipt describes. */
export type ReceiptOperation = 'import' | 'export' | 'convert' | 'merge' | 'derive' | 'apply' | 'remove' | 'select';

/** Lists of tensors by their treatment, each ascending by name. */
export interface ReceiptTensors {
  /** Tensors that were taken. */
  admitted: string[];
  /** Tensors that were left out. */
  dropped: string[];
  /** Tensors that were renamed: old name, new name. */
  renamed: [string, string][];
  /** Tensors that were written in another type. */
  converted: string[];
  /** Factor that a tensor was multiplied by while it was written, because the file has one scale for all. */
  scaled?: Readonly<Record<string, number>> | undefined;
}

/** The program that wrote a receipt. */
export interface ReceiptTool {
  /** Name of the program. */
  name: string;
  /** Version of the program. */
  version: string;
}

/** Record of a model's training: each value is measured or given, else absent. */
export interface ReceiptTraining {
  /** Settings of the run; the seed as `0x` and 16 hex digits. */
  settings: Json;
  /** Data that the model was trained on. */
  data: ReceiptData;
  /** Number of steps that were made with other settings before these, if there were any. */
  steps_before?: number | undefined;
  /** Number of completed optimizer steps. */
  completed_steps: number;
  /** Number of counted targets so far. */
  tokens: number;
  /** Measured losses. */
  losses: ReceiptLosses;
}

/** A warning of a receipt. */
export interface ReceiptWarning {
  /** Stable dotted word. */
  code: string;
  /** Tensor, key or file. */
  subject: string;
}

/** The digests that a document states (crate/FORMATS.md, "Digests"). */
export interface StatedDigests {
  /** Digest of parameters and buffers. */
  weights?: string | undefined;
  /** Digest of state tensors. */
  optimizer?: string | undefined;
  /** Digest of groups. */
  assignment?: string | undefined;
  /** Digest of the state dict. */
  state?: string | undefined;
  /** Digest of the tokenizer. */
  tokenizer?: string | undefined;
  /** Digest of the chat templates. */
  template?: string | undefined;
  /** Digest of the whole bundle. */
  bundle?: string | undefined;
}

/** Extent of the comparison with stated digests. */
export type VerifyPolicy = 'full' | 'header';
