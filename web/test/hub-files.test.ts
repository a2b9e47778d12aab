import { describe, expect, it } from 'vitest';

import { dataFiles, modelFiles } from '../src/worker/hub-files.js';
import type { HubFile } from '../src/worker/hub-files.js';

const files = (...paths: string[]): HubFile[] =>
  paths.map((path, at) => ({ path, size: 100 + at, sum: undefined }));
const wish = (path = '', quant?: string): Parameters<typeof modelFiles>[0] => ({
  subject: 'hf:a/b@main',
  path,
  quant,
});
const taken = (all: HubFile[], path?: string, quant?: string): string[] =>
  modelFiles(wish(path, quant), all).map((file) => file.path);
const refused = { detail: { code: 'hub.files' } };

const COMMON = [
  'config.json',
  'generation_config.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'special_tokens_map.json',
  'merges.txt',
  'vocab.json',
  'chat_template.jinja',
  'additional_chat_templates/tool.jinja',
  'LICENSE',
];
const REST = [
  'README.md',
  '.gitattributes',
  'pytorch_model.bin',
  'onnx/model.onnx',
  'sub/config.json',
  'training_args.bin',
  'tf_model.h5',
];

describe('files of a repository', () => {
  it('are_configuration_tokenizer_templates_licence_and_weights', () => {
    const all = files(...REST, ...COMMON, 'model.safetensors', 'm-Q4_K_M.gguf');
    expect(taken(all)).toEqual([...COMMON, 'model.safetensors']);
  });
  it('are_all_shards_with_their_index', () => {
    const shards = [
      'model.safetensors.index.json',
      'model-00001-of-00002.safetensors',
      'model-00002-of-00002.safetensors',
    ];
    expect(taken(files('config.json', ...shards, 'other.safetensors'))).toEqual([
      'config.json',
      ...shards,
    ]);
  });
  it('are_those_of_a_folder_or_the_one_that_is_named', () => {
    const all = files('sub/config.json', 'sub/model.safetensors', 'config.json', 'a.gguf');
    expect(taken(all, 'sub')).toEqual(['sub/config.json', 'sub/model.safetensors']);
    expect(taken(all, 'config.json')).toEqual(['config.json']);
    expect(() => taken(all, 'none')).toThrow(expect.objectContaining(refused));
  });
  it('are_those_of_an_adapter', () => {
    const adapter = ['adapter_config.json', 'adapter_model.safetensors'];
    expect(taken(files('README.md', ...adapter))).toEqual(adapter);
  });
  it('are_one_GGUF_file_or_all_its_parts', () => {
    const all = files(
      'm-Q2_K.gguf',
      'm-Q8_0.gguf',
      'mmproj-F16.gguf',
      'Q5_K_M/m-00001-of-00002.gguf',
      'Q5_K_M/m-00002-of-00002.gguf',
    );
    expect(taken(all)).toEqual(['m-Q8_0.gguf']);
    expect(taken([...all, ...files('m.Q4_K_M.gguf')])).toEqual(['m.Q4_K_M.gguf']);
    const parts = ['Q5_K_M/m-00001-of-00002.gguf', 'Q5_K_M/m-00002-of-00002.gguf'];
    expect(taken(all, '', 'q5_k_m')).toEqual(parts);
    expect(taken(all, parts[0])).toEqual(parts);
    expect(taken(files('only.gguf'))).toEqual(['only.gguf']);
    expect(taken(files('config.json', 'model.safetensors', 'm-Q8_0.gguf'), '', 'Q8_0')).toEqual([
      'm-Q8_0.gguf',
    ]);
    expect(() => taken(all, '', 'F32')).toThrow(/m-Q2_K\.gguf \(100 bytes\)/);
    expect(() => taken(files('m-Q2_K.gguf', 'm-Q3_K_S.gguf'))).toThrow(
      expect.objectContaining(refused),
    );
    expect(() => taken(files('a-Q8_0.gguf', 'b-Q8_0.gguf'))).toThrow(
      expect.objectContaining(refused),
    );
  });
  it('are_never_a_pickle', () => {
    expect(() => taken(files('config.json', 'pytorch_model.bin'))).toThrow(/pytorch_model\.bin/);
    expect(() => taken(files())).toThrow(/no files/);
  });
  it('of_data_have_one_form_and_are_the_training_part', () => {
    const data = (path: string, ...paths: string[]): string[][] => {
      const found = dataFiles(wish(path), files(...paths));
      return [found.taken, found.left].map((list) => list.map((file) => file.path));
    };
    expect(data('', 'README.md', 'dataset_infos.json', 'a.csv', 'b.csv')).toEqual([
      ['a.csv', 'b.csv'],
      [],
    ]);
    expect(data('', 'data/train-0.parquet', 'data/test-0.parquet')).toEqual([
      ['data/train-0.parquet'],
      ['data/test-0.parquet'],
    ]);
    expect(data('en', 'en/train.jsonl.gz', 'de/train.jsonl.gz')).toEqual([
      ['en/train.jsonl.gz'],
      [],
    ]);
    expect(data('data/test.jsonl', 'data/train.jsonl', 'data/test.jsonl')).toEqual([
      ['data/test.jsonl'],
      [],
    ]);
    for (const paths of [['a.png'], ['a.csv', 'a.jsonl'], []])
      expect(() => data('', ...paths)).toThrow(expect.objectContaining(refused));
  });
});
