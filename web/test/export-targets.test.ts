/** Exports into folders, files and streams: what is written to them, in which order, and what remains if it fails. */
import { unzipSync } from 'fflate';
import { describe, expect, it, vi } from 'vitest';

import { asTarget, collected, joined } from './collected.js';
import { fake } from '../src/testing/fake-calls.js';
import { Origin, StoredFile, StoredFolder } from './origin.js';
import { opened, trainerOf } from './runs.js';

const PIECE = 8 << 20;
const RECEIPT = 'tabtune.receipt.json';
const folder = (origin = new Origin()): StoredFolder => new StoredFolder('picked', origin);
const content = (file: unknown): string =>
  file instanceof StoredFile ? new TextDecoder().decode(file.content) : '';

describe('an export', () => {
  it('into_a_folder_writes_the_receipt_last_and_gives_it', async () => {
    await using trainer = await trainerOf();
    const origin = new Origin();
    const picked = folder(origin);
    await picked.getFileHandle(RECEIPT, { create: true });
    const stale: boolean[] = [];
    origin.onWrite = () => stale.push(picked.entries.has(RECEIPT));
    const receipt = await trainer.exportTo(asTarget(picked));
    expect(origin.flushed).toEqual(['config.json', 'model.safetensors', RECEIPT]);
    expect(stale).toEqual([false, false, true]);
    expect(JSON.parse(content(picked.at(RECEIPT)))).toEqual(receipt);
    expect(receipt).toMatchObject({
      operation: 'export',
      outputs: [{ name: 'config.json' }, { name: 'model.safetensors', bytes: 1_000_000 }],
    });
    expect(fake.streams).toBe(0);
  });
  it('into_a_file_is_the_single_file_or_a_zip', async () => {
    using model = await opened();
    const origin = new Origin();
    const file = new StoredFile('out', origin);
    await model.exportTo(asTarget(file), { format: 'gguf', type: 'f16' });
    expect(content(file)).toBe('{"format":"gguf","type":"f16","allow_non_finite":false}');
    await model.exportTo(asTarget(file));
    expect(
      Object.entries(unzipSync(file.content)).map(([name, { byteLength }]) => [name, byteLength]),
    ).toEqual([
      ['config.json', 26],
      ['model.safetensors', 1_000_000],
      [RECEIPT, 125],
    ]);
    expect(new Uint8Array(await (await model.export()).arrayBuffer())).toEqual(file.content);
  });
  it('into_a_private_file_of_a_browser_without_writables_is_written_in_place', async () => {
    using model = await opened();
    const file = new StoredFile('out', new Origin());
    const old = { kind: 'file', createSyncAccessHandle: () => file.createSyncAccessHandle() };
    await model.exportTo(asTarget(old), { format: 'json' });
    expect(file.content.byteLength).toBe(1_000_000);
    await model.exportTo(asTarget(old), { format: 'gguf' });
    expect(content(file)).toBe('{"format":"gguf","allow_non_finite":false}');
  });
  it('into_a_stream_is_written_in_pieces_and_waits_for_each', async () => {
    fake.exportBytes = 2 * PIECE + 5;
    using model = await opened();
    let writing = 0;
    const { seen, stream } = collected(async () => {
      expect(++writing).toBe(1);
      await new Promise((done) => setTimeout(done, 5));
      writing -= 1;
    });
    const sizes: number[] = [];
    const Plain = Blob;
    vi.stubGlobal(
      'Blob',
      class extends Plain {
        constructor(parts?: BlobPart[], options?: BlobPropertyBag) {
          super(parts, options);
          sizes.push(this.size);
        }
      },
    );
    await model.exportTo(stream, { format: 'json' });
    vi.unstubAllGlobals();
    expect(seen.chunks.map(({ byteLength }) => byteLength)).toEqual([PIECE, PIECE, 5]);
    expect([seen.closed, seen.aborted, sizes]).toEqual([true, false, []]);
  });
  it('into_a_stream_of_several_files_is_a_zip', async () => {
    using model = await opened();
    const { seen, stream } = collected();
    const progress: number[] = [];
    const receipt = await model.exportTo(stream, {
      onProgress: ({ phase, fraction }) => phase === 'export' && progress.push(fraction),
    });
    const files = unzipSync(joined(seen.chunks));
    expect(Object.keys(files)).toEqual(['config.json', 'model.safetensors', RECEIPT]);
    expect(JSON.parse(new TextDecoder().decode(files[RECEIPT]))).toEqual(receipt);
    expect([progress.at(-1), seen.closed]).toEqual([1, true]);
  });
  it.each([
    ['folder', 'gguf'],
    ['folder', 'safetensors'],
    ['file', 'safetensors'],
    ['file', 'gguf'],
  ] as const)(
    'into_a_%s_that_is_aborted_leaves_nothing_that_looks_whole_%s',
    async (kind, format) => {
      fake.exportBytes = 3 * PIECE;
      await using trainer = await trainerOf();
      const origin = new Origin();
      const target = kind === 'folder' ? folder(origin) : new StoredFile('out', origin);
      const controller = new AbortController();
      fake.onCall = ({ call, at }) =>
        call === 'chunk' && at === (format === 'gguf' ? 0 : 2) && controller.abort();
      const begun = performance.now();
      await expect(
        trainer.exportTo(asTarget(target), { format, signal: controller.signal }),
      ).rejects.toMatchObject({ name: 'AbortError' });
      expect(performance.now() - begun).toBeLessThan(1500);
      expect(origin.flushed).not.toContain(RECEIPT);
      expect(origin.flushed).not.toContain('out');
      fake.onCall = undefined;
      expect(fake.streams).toBe(0);
      expect((await trainer.step()).map(({ step }) => step)).toEqual([1]);
    },
  );
  it('into_a_stream_whose_reader_stalls_can_be_aborted', async () => {
    using model = await opened();
    const { seen, stream } = collected(() => new Promise(() => undefined));
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 50);
    const begun = performance.now();
    await expect(model.exportTo(stream, { signal: controller.signal })).rejects.toMatchObject({
      name: 'AbortError',
    });
    expect(performance.now() - begun).toBeLessThan(550);
    expect(seen.closed).toBe(false);
    expect((await model.export({ format: 'json' })).size).toBe(1_000_000);
  });
  it('that_the_target_refuses_is_sink_write_and_the_model_can_be_exported_again', async () => {
    using model = await opened();
    const origin = new Origin();
    origin.onWrite = () => {
      throw new DOMException('the disk is full', 'QuotaExceededError');
    };
    const refused = {
      code: 'STORAGE_FAILED',
      detail: { code: 'sink.write', reason: 'QuotaExceededError' },
    };
    await expect(model.exportTo(asTarget(folder(origin)))).rejects.toMatchObject(refused);
    const { seen, stream } = collected(() => {
      throw new TypeError('gone');
    });
    await expect(model.exportTo(stream)).rejects.toMatchObject({
      detail: { code: 'sink.write', reason: 'TypeError' },
    });
    expect(seen.closed).toBe(false);
    expect((await model.exportFiles()).map(({ name }) => name)).toEqual([
      'config.json',
      'model.safetensors',
      RECEIPT,
    ]);
    expect(fake.streams).toBe(0);
  });
  it('that_cannot_begin_errors_the_stream_for_its_reader', async () => {
    const model = await opened();
    const { seen, stream } = collected();
    await expect(
      model.exportTo(stream, { format: 'gguf', base: new URL('https://nowhere.invalid/b.gguf') }),
    ).rejects.toMatchObject({ detail: { code: 'source.download' } });
    expect(seen.aborted).toBe(true);
    await model.dispose();
    await expect(model.exportTo(asTarget(folder()))).rejects.toMatchObject({
      detail: { code: 'model.taken' },
    });
  });
  it('of_bytes_that_were_not_announced_is_refused', async () => {
    using model = await opened();
    const picked = folder();
    fake.onCall = ({ call, at }) =>
      call === 'chunk' && at === 1 && Object.assign(fake, { cut: true });
    await expect(model.exportTo(asTarget(picked))).rejects.toMatchObject({
      detail: { code: 'export.stream' },
    });
    expect(picked.entries.has(RECEIPT)).toBe(false);
  });
});
