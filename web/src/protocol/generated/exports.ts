// Made by npm run generate; not for editing.
/** Words of the formats of exports. */
export const EXPORT_WORDS = ['safetensors', 'gguf', 'json', 'peft', 'gguf-adapter'] as const;
/** Name of a form in which a model can leave. */
export type ExportFormat = 'safetensors' | 'gguf' | 'json' | 'peft' | 'gguf-adapter';

/** Options of exports that only some formats have. */
export type OwnExportOption = 'base' | 'dtype' | 'encoding' | 'manifest' | 'optimizer' | 'requantise' | 'shardBytes' | 'type';

/**
 * Formats of exports: a description, the ending of the one file (empty for a folder), whether it is the format of a trained adapter alone, and the
 * options that it has and not all formats have.
 */
export const EXPORT_FORMATS: Readonly<Record<ExportFormat, { about: string; ending: string; adapter: boolean; options: readonly OwnExportOption[] }>> = {
  safetensors: { about: 'Hugging Face folder, safetensors', ending: '', adapter: false, options: ['base', 'dtype', 'manifest', 'optimizer', 'shardBytes'] },
  gguf: { about: 'GGUF for llama.cpp', ending: '.gguf', adapter: false, options: ['base', 'type', 'requantise'] },
  json: { about: 'JSON document', ending: '.state_dict.json', adapter: false, options: ['encoding', 'manifest', 'optimizer'] },
  peft: { about: 'LoRA adapter, PEFT folder', ending: '', adapter: true, options: ['base', 'dtype'] },
  'gguf-adapter': { about: 'LoRA adapter, GGUF for llama.cpp', ending: '.gguf', adapter: true, options: ['base', 'type'] },
};
