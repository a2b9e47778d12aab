import { describe, expect, it } from 'vitest';

import { newModel, openModel } from '../src/index.js';
import type { ExportOptions, Model } from '../src/index.js';
import { fakeWorker } from '../src/testing/channel.js';
import { asTarget } from './collected.js';
import { SHAPE, TEXT, opened, trainerOf } from './runs.js';

describe('options of an export', () => {
  it('go_to_the_core_under_its_names', async () => {
    using model = await opened();
    const card = { name: 'n', license: 'mit', baseModel: 'b', data: 'd', text: 't' };
    const given: ExportOptions = {
      format: 'safetensors',
      dtype: 'bf16',
      shardBytes: 5,
      optimizer: true,
      manifest: false,
      allowNonFinite: false,
      name: 'mine',
      card,
    };
    const [config] = await model.exportFiles(given);
    expect(JSON.parse((await config?.blob.text()) ?? '')).toEqual({
      ...{
        format: 'safetensors',
        dtype: 'bf16',
        shard_bytes: 5,
        optimizer: true,
        manifest: false,
        allow_non_finite: false,
        name: 'mine',
      },
      card: { name: 'n', license: 'mit', base_model: 'b', data: 'd', text: 't' },
    });
  });
  it('default_to_those_that_the_model_was_opened_with', async () => {
    using model = await openModel(new File(['GGUF....'], 'a.gguf'), {
      worker: fakeWorker,
      allowNonFinite: true,
    });
    const written = async (options: ExportOptions): Promise<unknown> =>
      JSON.parse((await (await model.exportFiles(options))[0]?.blob.text()) ?? '');
    expect(await written({})).toEqual({ allow_non_finite: true });
    expect(await written({ allowNonFinite: false })).toEqual({ allow_non_finite: false });
  });
  it.each<[string, object]>([
    ['format', { format: 'pickle' }],
    ['type', { type: 'f16' }],
    ['type', { format: 'gguf', type: 'q9' }],
    ['base', { format: 'json', base: new File(['GGUF'], 'b.gguf') }],
    ['base', { format: 'gguf', base: [] }],
    ['encoding', { encoding: 'base64' }],
    ['dtype', { format: 'gguf', dtype: 'f16' }],
    ['optimizer', { format: 'gguf', optimizer: true }],
    ['shardBytes', { format: 'json', shardBytes: 5 }],
    ['requantise', { requantise: true }],
    ['dtype', { dtype: 'f64' }],
    ['shardBytes', { shardBytes: 0.5 }],
    ['card.licence', { card: { licence: 'mit' } }],
    ['card', { card: 'mine' }],
    ['optimiser', { optimiser: true }],
  ])('that_are_wrong_are_refused_%s', async (path, options) => {
    using model = await opened();
    await expect(model.export(options)).rejects.toMatchObject({
      code: 'BAD_OPTION',
      detail: { code: 'option.invalid', path },
    });
  });
  it('with_a_target_of_another_kind_are_refused', async () => {
    using model = await opened();
    for (const target of [undefined, null, 'here', { kind: 'drawer' }, new Blob()]) {
      await expect(model.exportTo(asTarget(target))).rejects.toMatchObject({
        code: 'BAD_OPTION',
        detail: { path: 'target' },
      });
    }
  });
});

describe('an exported file', () => {
  it.each<[string, string, ExportOptions]>([
    ['model.zip', 'application/zip', {}],
    ['adapter.zip', 'application/zip', { format: 'peft' }],
    ['mine.zip', 'application/zip', { name: 'mine' }],
    ['mine.zip', 'application/zip', { format: 'peft', name: 'mine' }],
    ['my-model-.zip', 'application/zip', { name: 'my/model\u202e' }],
    ['model.gguf', 'application/octet-stream', { format: 'gguf' }],
    ['model.json', 'application/json', { format: 'json' }],
  ])('is_called_%s', async (name, type, options) => {
    await using trainer = await trainerOf();
    const file = await trainer.export(options);
    expect([file.name, file.type]).toEqual([name, type]);
    expect(file).toBeInstanceOf(File);
    const all = await trainer.exportFiles(options);
    const receipt = all.pop();
    // A zip has the receipt too; the single file is the whole export.
    if (type === 'application/zip') expect(file.size).toBeGreaterThan(receipt?.blob.size ?? 0);
    else expect(file.size).toBe(all[0]?.blob.size);
  });
});

describe('a model', () => {
  it('has_the_details_that_the_core_reports', async () => {
    using model = await openModel(new File(['GGUF....'], 'a.gguf'), {
      worker: fakeWorker,
      request: {
        groupPolicy: 'weights_only',
        selection: { includePatterns: ['a.*'] },
        keyRemap: { sourceToTarget: { fooBar: 'b' }, renameState: true },
      },
      mergeAdapter: new File(['x'], 'adapter_model.safetensors'),
    });
    expect(model.exports.map(({ format, ok, needs, type }) => [format, ok, needs, type])).toEqual([
      ['safetensors', true, undefined, undefined],
      ['gguf', true, 'base', 'as-base'],
      ['json', false, undefined, undefined],
    ]);
    const request = {
      group_policy: 'weights_only',
      selection: { include_patterns: ['a.*'] },
      key_remap: { source_to_target: { fooBar: 'b' }, rename_state: true },
    };
    expect(model.contract).toMatchObject({ adapter: ['adapter_model.safetensors'], request });
    expect([model.receipt, model.base]).toEqual([{ operation: 'import' }, { name: 'model' }]);
    using fresh = await newModel(SHAPE, TEXT, { worker: fakeWorker });
    expect([fresh.receipt, fresh.base]).toEqual([undefined, undefined]);
  });
  it('is_opened_with_a_request_whose_keys_are_known', async () => {
    const wrong = (request: object): Promise<Model> =>
      openModel(new File(['GGUF....'], 'a.gguf'), { worker: fakeWorker, request });
    for (const [path, request] of [
      ['request.select', { select: {} }],
      ['request.selection.includePatterns', { selection: { includePatterns: 'a' } }],
      ['request.keyRemap.sourceToTarget', { keyRemap: { sourceToTarget: { a: 1 } } }],
      ['request.names', { names: 'hf' }],
      ['request.groupPolicy', { groupPolicy: 'some' }],
    ] as const) {
      await expect(wrong(request)).rejects.toMatchObject({ code: 'BAD_OPTION', detail: { path } });
    }
  });
  it('gives_one_tensor', async () => {
    using model = await opened();
    const { values, ...rest } = await model.tensor('model.norm.weight');
    expect([rest, values]).toEqual([
      { name: 'model.norm.weight', dtype: 'BF16', shape: [2] },
      Float32Array.of(0.5, -0.5),
    ]);
    await expect(model.tensor('absent')).rejects.toMatchObject({
      detail: { code: 'plan.tensor.unknown' },
    });
  });
  it('is_read_from_a_folder_by_the_names_in_it', async () => {
    const getFileHandle = async (name: string) => ({
      getFile: async () => new File(['GGUF'], name),
    });
    const templates = {
      async *entries() {
        for (const name of ['tool_use.jinja', 'notes.txt']) yield [name, { kind: 'file' }];
      },
      getFileHandle,
    };
    const files = {
      async *entries() {
        for (const name of ['b.gguf', 'a.gguf']) yield [name, { kind: 'file' }];
        for (const name of ['inner', 'additional_chat_templates'])
          yield [name, { kind: 'directory' }];
      },
      kind: 'directory',
      getFileHandle,
      getDirectoryHandle: async () => templates,
    };
    using model = await openModel([asTarget(files) as FileSystemDirectoryHandle], {
      worker: fakeWorker,
      mergeAdapter: asTarget(files) as FileSystemDirectoryHandle,
    });
    expect(model.contract).toMatchObject({ adapter: ['a.gguf', 'b.gguf', 'tool_use.jinja'] });
  });
  it('in_training_has_the_forms_of_export_before_its_first_step', async () => {
    await using trainer = await trainerOf();
    const forms = await trainer.exports();
    expect(forms.map(({ format, ok, reason }) => [format, ok, reason])).toEqual([
      ['safetensors', true, undefined],
      ['gguf', true, undefined],
      ['json', false, 'more than 64 MiB'],
    ]);
    await trainer.step();
    expect(await trainer.exports()).toEqual(forms);
  });
  it('in_training_has_the_details_that_the_core_reports_of_its_weights', async () => {
    await using trainer = await trainerOf();
    await trainer.step(2);
    const { exports, contract } = await trainer.details();
    expect([exports.map(({ ok }) => ok), contract]).toEqual([[true, true, false], { step: 2 }]);
  });
});
