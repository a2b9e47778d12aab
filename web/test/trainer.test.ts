import { describe, expect, it, vi } from 'vitest';

import { inspectData, Model, newModel, Trainer } from '../src/index.js';
import { OWNER, ownerOf } from '../src/protocol/messages.js';
import { fake } from '../src/testing/fake-wasm.js';
import { channel, fakeWorker, received } from '../src/testing/channel.js';
import { SHAPE, TEXT, collect, stepsOf, trainerOf } from './runs.js';

describe('trainer', () => {
  it('a_model_of_another_copy_of_the_package_is_reported_as_such', async () => {
    vi.resetModules();
    const { newModel: newOther } = await import('../src/index.js');
    using model = await newOther(SHAPE, TEXT, { worker: fakeWorker });
    expect(model).not.toBeInstanceOf(Model);
    for (const call of [
      Trainer.create({ model, data: TEXT, steps: 1 }),
      Trainer.estimate(model),
      inspectData(TEXT, { model }),
    ]) {
      await expect(call).rejects.toMatchObject({ code: 'BAD_OPTION', detail: { path: 'model' } });
      await expect(call).rejects.toThrow('a model of another copy of the package');
    }
  });
  it('run_yields_every_step_and_ends_done', async () => {
    await using trainer = await trainerOf();
    const events = await collect(trainer.run());
    expect(stepsOf(events)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(events.at(-1)).toEqual({ type: 'state', state: 'done', step: 10 });
    expect(trainer.state).toBe('done');
  });
  it('data_may_be_token_ids', async () => {
    const tokens = Uint32Array.from({ length: 50 }, (_, i) => i);
    await using trainer = await trainerOf({ data: { tokens }, dataOrder: 'sequential' });
    // The stand-in counts bytes: four of each id crossed.
    expect((await trainer.info()).dataTokens).toBe(200);
    expect((await trainer.save()).dataName).toBe('data.tokens');
    const wrong: unknown = { tokens: [1, 2, 3] };
    await expect(trainerOf({ data: wrong as { tokens: Uint32Array } })).rejects.toMatchObject({
      code: 'BAD_OPTION',
      detail: { path: 'data.tokens' },
    });
    await expect(newModel(SHAPE, { tokens }, { worker: fakeWorker() })).rejects.toMatchObject({
      code: 'BAD_OPTION',
      detail: { path: 'data' },
    });
  });
  it('inspect_lists_the_parameters_that_apollo_leaves_to_adamw', async () => {
    await using trainer = await trainerOf({ optimizer: { type: 'apollo', rank: 2 } });
    expect((await trainer.info()).fallbacks).toEqual(['model.norm.weight']);
    await using other = await trainerOf();
    expect((await other.info()).fallbacks).toEqual([]);
  });
  it('max_steps_limits_a_run_and_the_next_one_continues', async () => {
    await using trainer = await trainerOf();
    expect(stepsOf(await collect(trainer.run({ maxSteps: 3 })))).toEqual([1, 2, 3]);
    expect((await trainer.step(2)).map((event) => event.step)).toEqual([4, 5]);
    expect(stepsOf(await collect(trainer.run({ maxSteps: 1 })))).toEqual([6]);
  });
  it('pause_stops_the_iterator_and_resume_continues_it', async () => {
    fake.stepMillis = 5;
    await using trainer = await trainerOf({ steps: 60 });
    const seen: number[] = [];
    let resumed = false;
    for await (const event of trainer.run()) {
      if (event.type === 'step') seen.push(event.step);
      if (event.type === 'step' && event.step === 3) {
        await trainer.pause();
        expect(trainer.state).toBe('paused');
        setTimeout(() => {
          resumed = true;
          void trainer.resume();
        }, 30);
      }
    }
    expect(resumed).toBe(true);
    expect(seen).toEqual(Array.from({ length: 60 }, (_, i) => i + 1));
  });
  it('one_step_is_possible_while_paused', async () => {
    fake.stepMillis = 5;
    await using trainer = await trainerOf();
    const run = collect(trainer.run());
    await new Promise((resolve) => setTimeout(resolve, 20));
    await trainer.pause();
    const at = trainer.completedSteps;
    expect((await trainer.step()).map((event) => event.step)).toEqual([at + 1]);
    await trainer.resume();
    expect(stepsOf(await run)).toHaveLength(10);
  });
  it('profile_makes_steps_and_reports_their_kernels_while_paused', async () => {
    fake.stepMillis = 5;
    await using trainer = await trainerOf();
    const run = collect(trainer.run());
    await new Promise((resolve) => setTimeout(resolve, 20));
    await expect(trainer.profile()).rejects.toMatchObject({ code: 'BUSY' });
    await trainer.pause();
    const at = trainer.completedSteps;
    const { steps, timing, kernels } = await trainer.profile(2);
    expect([steps, timing, kernels.map(({ kernel }) => kernel)]).toEqual([
      2,
      'device',
      ['linear_forward', 'Burn: FullKernel'],
    ]);
    expect(trainer.completedSteps).toBe(at + 2);
    await expect(trainer.profile(0)).rejects.toMatchObject({ code: 'BAD_OPTION' });
    await trainer.resume();
    expect(stepsOf(await run)).toHaveLength(10);
  });
  it('breaking_out_of_the_loop_pauses', async () => {
    fake.stepMillis = 5;
    await using trainer = await trainerOf({ steps: 100 });
    for await (const event of trainer.run()) if (event.type === 'step' && event.step === 2) break;
    const at = trainer.completedSteps;
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect((await trainer.info()).completedSteps).toBe(at);
    expect(at).toBeLessThan(60);
  });
  it('stop_ends_the_run', async () => {
    fake.stepMillis = 2;
    await using trainer = await trainerOf({ steps: 1000 });
    const run = collect(trainer.run());
    await new Promise((resolve) => setTimeout(resolve, 20));
    await trainer.stop();
    expect((await run).at(-1)).toMatchObject({ type: 'state', state: 'stopped' });
  });
  it.each([1, 8])(
    'pause_and_stop_act_within_three_steps_with_reports_of_%i',
    async (reportEvery) => {
      fake.stepMillis = 4;
      await using trainer = await trainerOf({ steps: 1000, reportEvery });
      const run = collect(trainer.run());
      // Counts the steps begun after the call, while some reports are on their way.
      const begunAfter = async (call: () => Promise<void>): Promise<number> => {
        while (fake.batches.length < 12) await new Promise((resolve) => setTimeout(resolve, 5));
        const before = fake.batches.length;
        await call();
        const after = fake.batches.length;
        expect((await trainer.info()).completedSteps).toBe(trainer.completedSteps);
        await new Promise((resolve) => setTimeout(resolve, 20));
        expect(fake.batches.length).toBe(after);
        return after - before;
      };
      // One step may begin while the call is on its way to the worker, and is then the current one.
      const most = reportEvery === 1 ? 2 : 3;
      expect(await begunAfter(() => trainer.pause())).toBeLessThanOrEqual(most);
      fake.batches.length = 0;
      await trainer.resume();
      expect(await begunAfter(() => trainer.stop())).toBeLessThanOrEqual(most);
      await run;
    },
  );
  it('abort_rejects_with_abort_error_and_leaves_a_state_that_can_continue', async () => {
    fake.stepMillis = 2;
    await using trainer = await trainerOf({ steps: 1000 });
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 20);
    await expect(collect(trainer.run({ signal: controller.signal }))).rejects.toMatchObject({
      name: 'AbortError',
      code: 'ABORTED',
    });
    const at = trainer.completedSteps;
    expect((await trainer.step()).map((event) => event.step)).toEqual([at + 1]);
  });
  it('two_runs_at_once_are_busy', async () => {
    fake.stepMillis = 5;
    await using trainer = await trainerOf();
    const first = collect(trainer.run());
    await expect(collect(trainer.run())).rejects.toMatchObject({ code: 'BUSY' });
    await expect(trainer.step()).rejects.toMatchObject({ code: 'BUSY' });
    expect(stepsOf(await first)).toHaveLength(10);
  });
  it('sample_streams_tokens_and_can_be_stopped', async () => {
    await using trainer = await trainerOf();
    const tokens: string[] = [];
    for await (const token of trainer.sample('x', { maxTokens: 50 })) {
      tokens.push(token.text);
      if (tokens.length === 3) break;
    }
    expect(tokens).toHaveLength(3);
    expect(await trainer.evaluate()).toMatchObject({ tokens: 4096 });
  });
  it('export_is_a_zip_of_the_folder', async () => {
    await using trainer = await trainerOf();
    const zip = new Uint8Array(await (await trainer.export()).arrayBuffer());
    expect([...zip.slice(0, 4)]).toEqual([0x50, 0x4b, 3, 4]);
    const files = await trainer.exportFiles();
    expect(files.map(({ name, blob }) => [name, blob.size])).toEqual([
      ['config.json', 2],
      ['model.safetensors', 1_000_000],
      ['tabtune.receipt.json', 124],
    ]);
  });
  it('export_as_gguf_is_one_file_of_its_types_and_its_base', async () => {
    await using trainer = await trainerOf();
    expect(await (await trainer.export({ format: 'gguf', type: 'q8_0' })).text()).toBe(
      '{"format":"gguf","type":"q8_0"}',
    );
    const base = new File([new TextEncoder().encode('GGUF')], 'base.gguf');
    const [file] = await trainer.exportFiles({ format: 'gguf', base });
    expect([file?.name, await file?.blob.text()]).toEqual([
      'model.gguf',
      '{"format":"gguf"} base.gguf',
    ]);
    await expect(trainer.exportFiles({ format: 'gguf', base: [] })).rejects.toMatchObject({
      code: 'BAD_OPTION',
      detail: { path: 'base' },
    });
    await expect(trainer.exportFiles({ type: 'f16' })).rejects.toMatchObject({
      code: 'BAD_OPTION',
      detail: { path: 'type' },
    });
  });
});

describe('connection', () => {
  it('a_dead_worker_rejects_all_waiting_calls', async () => {
    const { port } = channel();
    const waiting = newModel(SHAPE, TEXT, { worker: port });
    setTimeout(() => port.dispatchEvent(Object.assign(new Event('error'), { message: 'boom' })), 5);
    await expect(waiting).rejects.toMatchObject({ code: 'WORKER_CRASHED' });
  });
  it('a_message_of_unknown_form_is_protocol', async () => {
    const { port, worker } = channel();
    const waiting = newModel(SHAPE, TEXT, { worker: port });
    await vi.waitFor(() => expect(received(worker)).toHaveLength(1));
    worker.postMessage({ [OWNER]: ownerOf(received(worker)[0]), type: 'surprise' });
    await expect(waiting).rejects.toMatchObject({ code: 'PROTOCOL' });
  });
});
