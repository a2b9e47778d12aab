import { describe, expect, it, vi } from 'vitest';

import { toData } from '../src/page/data-inputs.js';
import { toSources } from '../src/page/inputs.js';
import { hubOptions, pin } from '../src/page/names.js';
import type { HubOptions } from '../src/page/names.js';
import type { SourceSpec } from '../src/protocol/protocol.js';

const SUM = 'ab'.repeat(32);
const described = async (input: unknown, hub?: HubOptions): Promise<SourceSpec | undefined> =>
  (await toSources([input as string], 'files', undefined, hub))[0];

describe('a name', () => {
  it.each([
    ['hf:owner/name', 'owner/name', 'main', ''],
    ['HF:owner/name', 'owner/name', 'main', ''],
    ['hf:gpt2', 'gpt2', 'main', ''],
    ['hf:owner/name@v1.0', 'owner/name', 'v1.0', ''],
    ['hf:owner/name@refs/pr/3', 'owner/name', 'refs/pr/3', ''],
    ['hf://owner/name@main/sub/m.gguf', 'owner/name', 'main', 'sub/m.gguf'],
    ['hf:owner/name/m.gguf', 'owner/name', 'main', 'm.gguf'],
    ['https://huggingface.co/owner/name', 'owner/name', 'main', ''],
    ['https://huggingface.co/owner/name/', 'owner/name', 'main', ''],
    ['https://huggingface.co/owner/name/tree/v2', 'owner/name', 'v2', ''],
    ['https://huggingface.co/owner/name/tree/main/sub', 'owner/name', 'main', 'sub'],
    [
      'https://huggingface.co/owner/name/blob/main/a%20b.gguf?show_file_info=x',
      'owner/name',
      'main',
      'a b.gguf',
    ],
    [
      'https://hf.co/owner/name/resolve/refs%2Fpr%2F1/m.gguf?download=true',
      'owner/name',
      'refs/pr/1',
      'm.gguf',
    ],
  ])('is_read_from_%s', async (text, repo, revision, path) => {
    const expected = {
      kind: 'hub',
      hub: 'https://huggingface.co',
      repo,
      revision,
      path,
      dataset: false,
    };
    expect(await described(text)).toMatchObject(expected);
    expect(await described({ url: text })).toMatchObject(expected);
    if (!text.toLowerCase().startsWith('hf:'))
      expect(await described(new URL(text))).toMatchObject(expected);
  });
  it.each([
    'https://example.org/owner/name',
    'https://huggingface.co/docs/hub',
    'https://huggingface.co/spaces/owner/name',
    'https://huggingface.co/owner/name/discussions/1',
  ])('is_none_in_%s', async (url) => {
    expect(await described(url)).toMatchObject({ kind: 'url', url });
  });
  it('is_of_the_hub_that_is_given_and_takes_its_options', async () => {
    const hub = 'https://mirror.example/hf/';
    const token = async (): Promise<string> => 'hf_x';
    const expected = {
      hub: 'https://mirror.example/hf',
      repo: 'a/b',
      token: 'hf_x',
      quant: 'Q8_0',
      keep: false,
    };
    const options = { hub, token, quant: 'Q8_0', keepDownloads: false };
    for (const text of ['hf:a/b', 'https://huggingface.co/a/b', 'https://mirror.example/hf/a/b'])
      expect(await described(text, options)).toMatchObject(expected);
    expect(await described({ url: 'hf:a/b', ...options })).toMatchObject(expected);
    expect(await described({ url: 'hf:a/b', quant: 'F16' }, options)).toMatchObject({
      quant: 'F16',
    });
  });
  it('that_is_wrong_is_refused_by_its_path', async () => {
    for (const [path, input, options] of [
      ['files[0]', 'hf:', {}],
      ['files[0]', 'hf:@main', {}],
      ['files[0].url', { url: 5 }, {}],
      ['files[0].sha', { url: 'hf:a/b', sha: SUM }, {}],
      ['files[0].sha256', { url: 'https://a.example/m.gguf', sha256: 'x' }, {}],
      ['files[0].sha256', { url: 'hf:a/b', sha256: SUM }, {}],
      ['hub', 'hf:a/b', { hub: 'mirror' }],
      ['token', 'hf:a/b', { token: () => 'two words' }],
      ['token', 'hf:a/b', { token: () => Promise.reject(new Error('no')) }],
    ] as [string, unknown, HubOptions][])
      await expect(described(input, options), path).rejects.toMatchObject({
        code: 'BAD_OPTION',
        detail: { path },
      });
    for (const [path, options] of [
      ['hub', { hub: 'ftp://a' }],
      ['token', { token: 5 }],
      ['quant', { quant: 8 }],
      ['keepDownloads', { keepDownloads: 'no' }],
    ] as [string, HubOptions][])
      expect(() => hubOptions(options), path).toThrow(
        expect.objectContaining({
          code: 'BAD_OPTION',
          detail: expect.objectContaining({ path }) as object,
        }),
      );
  });
  it('never_shows_a_token_in_a_message', async () => {
    await expect(described('hf:a/b', { token: 'my secret' })).rejects.toThrow(/^(?!.*secret)/);
  });
});

describe('an address', () => {
  it('of_a_file_has_its_sum_and_resolves_as_links_do', async () => {
    vi.stubGlobal('document', { baseURI: 'https://here/app/' });
    expect(await described('models/m.gguf')).toEqual({
      kind: 'url',
      name: 'm.gguf',
      url: 'https://here/app/models/m.gguf',
    });
    expect(await described({ url: '/m.gguf', sha256: SUM.toUpperCase() })).toMatchObject({
      url: 'https://here/m.gguf',
      sum: SUM,
    });
    vi.unstubAllGlobals();
  });
  it('of_data_is_absolute_and_any_other_text_is_refused', async () => {
    const fileOf = async (data: unknown): Promise<SourceSpec | undefined> =>
      (await toData(data as 'hf:', undefined)).spec.files[0];
    expect(await fileOf('https://here/a.jsonl')).toMatchObject({ kind: 'url', name: 'a.jsonl' });
    expect(await fileOf('hf:datasets/owner/rows')).toMatchObject({
      kind: 'hub',
      dataset: true,
      repo: 'owner/rows',
    });
    expect(await fileOf({ url: 'hf:datasets/owner/rows', hub: 'https://m.example' })).toMatchObject(
      { hub: 'https://m.example' },
    );
    for (const text of ['to be or not to be', 'a.jsonl', '/a.jsonl', ''])
      await expect(fileOf(text)).rejects.toMatchObject({ code: 'BAD_OPTION' });
    const weighted = { files: 'hf:datasets/owner/rows', weight: 2 };
    await expect(fileOf([weighted])).rejects.toMatchObject({ code: 'BAD_OPTION' });
    expect(await fileOf([{ ...weighted, files: 'hf:datasets/owner/rows/a.csv' }])).toMatchObject({
      path: 'a.csv',
    });
  });
  it('that_was_a_branch_is_pinned_to_its_commit', async () => {
    const specs = [await described('hf:a/b@dev'), await described('hf:c/d')] as SourceSpec[];
    const hub = { repo: 'a/b', revision: 'dev', commit: 'c0' };
    pin(specs, { format: 'hf_folder', files: [], hub });
    expect(specs).toMatchObject([{ revision: 'dev', commit: 'c0' }, { revision: 'main' }]);
    expect(specs[1]).not.toHaveProperty('commit');
  });
});
