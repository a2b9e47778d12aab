// Generation and scoring with a model and a run in a real browser: answers, scores, texts of ids, rows by a custom metric.
import assert from 'node:assert/strict';
import { test } from '@playwright/test';
import { built } from '../../web/core-kind.mjs';
import { scenarios } from './scenario.mjs';

const { inPage } = scenarios({ folders: { '/pkg/': built.core } });

const RUN = { batchSize: 5, seqLen: 16, learningRate: 1e-2, seed: 7, autosave: false, logEvery: 1 };

test('a model answers token by token, accepts tools, scores and detokenizes', async () => {
  const found = await inPage(async ({ tabtune, failure }) => {
    const { talking, user, assistant, whole } = await import('/browser/asking-page.mjs');
    const files = await talking();
    const model = await tabtune.openModel(files);
    const greedy = { maxTokens: 4, temperature: 0 };
    const first = await whole(model.chat([user('it is')], greedy));
    // An answer that is left does not disturb the next one.
    for await (const _ of model.chat([user('why')], greedy)) break;
    const turns = [user('it is'), assistant(first.text), user('why not')];
    const second = await whole(model.chat(turns, greedy));
    const other = await tabtune.openModel(files);
    const fresh = await whole(other.chat(turns, greedy));
    const tools = [{ type: 'function', function: { name: 'add' } }];
    const prepared = await whole(other.chat([user('it is')], { ...greedy, tools }));
    const ids = await model.tokenize('it is|');
    const scores = [
      await model.score([user('it is')], { top: 2 }),
      await model.score('it is|', { top: 2 }),
      await model.score(ids, { top: 2 }),
    ];
    const withTools = await model.score([user('it is')], { tools });
    const words = await model.detokenize(ids);
    const refused = [
      await failure(whole(model.chat([user('it is')], { base: true }))),
      await failure(model.score('it is', { base: true })),
    ];
    const long = await failure(whole(model.chat([user('it is '.repeat(20))])));
    await model.dispose();
    await other.dispose();
    const text = withTools.tokens.map((token) => token.text).join('');
    return { first, second, fresh, prepared, scores, tools: text, words, refused, long };
  });
  assert.deepEqual([found.first.tokens.length, found.first.end], [4, 'length']);
  assert.ok(
    found.first.tokens.every(({ logprob, top }) => Number(logprob) <= 0 && top.length === 0),
  );
  assert.equal(found.second.text, found.fresh.text);
  assert.deepEqual([found.tools, found.words], ['add it is|', 'it is|']);
  const [messages, { warnings, ...text }, ids] = found.scores;
  assert.deepEqual([{ ...text, warnings: [] }, ids], [messages, messages]);
  // In a text of one's own the token is a control token; here the template wrote it.
  assert.deepEqual(
    warnings.map(({ code }) => code),
    ['data.control'],
  );
  assert.deepEqual([messages.tokens.length, messages.tokens[1].top.length], [6, 2]);
  const mean = messages.tokens.slice(1).reduce((sum, { logprob }) => sum - Number(logprob), 0) / 5;
  assert.ok(Math.abs(mean - Number(messages.loss)) < 1e-12);
  // The tools that the template writes before the conversation change the probabilities.
  assert.notEqual(found.prepared.tokens[0].logprob, found.first.tokens[0].logprob);
  for (const { code, path } of found.refused)
    assert.deepEqual([code, path], ['BAD_OPTION', 'base']);
  assert.equal(found.long.code, 'BAD_OPTION');
});

test('a trainer answers with its current weights, and stops at the end token that it learned', async () => {
  const found = await inPage(async ({ tabtune, failure }, run) => {
    const { talking, user, assistant, whole, ROWS } = await import('/browser/asking-page.mjs');
    const data = { text: ROWS, name: 'rows.jsonl' };
    const start = async () => {
      const model = await tabtune.openModel(await talking());
      return tabtune.Trainer.create({ model, data, steps: 60, ...run });
    };
    const greedy = { maxTokens: 8, temperature: 0 };
    const trainer = await start();
    const before = await whole(trainer.chat([user('it is')], greedy));
    await trainer.step(2);
    const after = await whole(trainer.chat([user('it is')], greedy));
    const quiet = await start();
    await quiet.step(2);
    // A run that was never asked before: what was computed with other weights is not used.
    const alone = await whole(quiet.chat([user('it is')], greedy));
    await quiet.dispose();
    await trainer.step(58);
    const learned = [];
    for (const question of ['it is', 'why not', 'is it'])
      learned.push(await whole(trainer.chat([user(question)], { maxTokens: 20 })));
    const score = await trainer.score([user('it is'), assistant('ok')]);
    /** @type {unknown[]} */
    const rows = [];
    /** @param {import('tabtune').ScoredRow} scored */
    const metric = ({ row, tokens, accuracy }) => {
      const answer = tokens.filter((token) => token.learned).map(({ text }) => text);
      rows.push([row?.line, answer.join('')]);
      return accuracy;
    };
    const report = await trainer.evaluateRows(data, { metric });
    const texts = await failure(trainer.evaluateRows({ text: 'it is' }, { metric }));
    const words = await trainer.detokenize(score.tokens.map(({ id }) => id));
    await trainer.dispose();
    return { before, after, alone, learned, score, rows, report, texts, words };
  }, RUN);
  assert.notDeepEqual(found.before.tokens[0].logprob, found.after.tokens[0].logprob);
  assert.deepEqual(found.after, found.alone);
  assert.deepEqual(
    found.learned.map(({ text, end }) => [text, end]),
    Array(3).fill(['ok', 'stop']),
  );
  assert.equal(found.words, 'it is|ok|');
  assert.ok(
    found.score.tokens.slice(-3).every(({ rank }) => rank === 1),
    JSON.stringify(found.score.tokens),
  );
  assert.deepEqual(
    found.rows,
    [1, 2, 3, 4, 5].map((line) => [line, 'ok|']),
  );
  assert.deepEqual(
    [found.report.metric, found.report.values, found.report.accuracy, found.report.tokens],
    [1, [1, 1, 1, 1, 1], 1, 15],
  );
  assert.ok(found.report.loss > 0 && found.report.loss < 0.5, `${found.report.loss}`);
  assert.deepEqual([found.texts.code, found.texts.path], ['BAD_OPTION', 'data']);
});

test('the base can answer without its adapter, in a trainer and in an open model', async () => {
  const found = await inPage(async ({ tabtune, failure }, run) => {
    const { talking, user, whole, ROWS } = await import('/browser/asking-page.mjs');
    const files = await talking();
    const greedy = { maxTokens: 5, temperature: 0 };
    /** @param {import('tabtune').Model | import('tabtune').Trainer} asked @param {boolean} [base] */
    const answer = async (asked, base) => [
      await whole(asked.chat([user('it is')], { ...greedy, base })),
      (await asked.score('it is|ok|', { base })).loss,
    ];
    const plain = await tabtune.openModel(files);
    const alone = await answer(plain);
    /** @type {import('tabtune').TrainOptions['adapter']} */
    const adapter = { r: 2, alpha: 4, targetModules: 'all-linear', modulesToSave: ['model.norm'] };
    const data = { text: ROWS, name: 'rows.jsonl' };
    const given = { model: plain, data, steps: 9, ...run, adapter };
    const trainer = await tabtune.Trainer.create(given);
    await trainer.step(4);
    const inRun = [await answer(trainer), await answer(trainer, true)];
    await trainer.step(2);
    inRun.push(await answer(trainer, true));
    const peft = await trainer.exportFiles({ format: 'peft' });
    const last = await answer(trainer);
    await trainer.dispose();
    const written = peft.map(({ name, blob }) => new File([blob], name));
    const both = await tabtune.openModel(files, { adapter: written });
    const opened = [await answer(both), await answer(both, true)];
    both.adapter = null;
    opened.push(await answer(both));
    const { path } = await failure(answer(both, true));
    await both.dispose();
    return { alone, inRun, last, opened, path };
  }, RUN);
  const { alone, inRun, last, opened, path } = found;
  assert.notEqual(inRun[0][1], alone[1]);
  assert.deepEqual([inRun[1], inRun[2]], [alone, alone]);
  assert.notEqual(last[1], inRun[0][1]);
  assert.ok(
    Math.abs(Number(opened[0][1]) - Number(last[1])) < 1e-5,
    `${opened[0][1]} and ${last[1]}`,
  );
  assert.deepEqual([...opened.slice(1), path], [alone, alone, 'base']);
});

test('a second turn computes only its new tokens, until the weights change', async () => {
  const { kept, alone, run, stepped } = await inPage(async () => {
    const { core, user, assistant } = await import('/browser/asking-page.mjs');
    const { module, model, answered, text, data } = await core();
    const turns = async (weights, between) => {
      const first = await answered(weights, [user('it is')], 4);
      await between();
      const next = [user('it is'), assistant(text(first.ids)), user('why')];
      return { first, next, second: await answered(weights, next, 4) };
    };
    const loaded = await model.load();
    const kept = await turns(loaded, () => undefined);
    const fresh = await model.load();
    const alone = await answered(fresh, kept.next, 4);
    const config = { steps: 9, batch_size: 5, seq_len: 16, learning_rate: 1e-2 };
    const session = await module.Session.create(
      model,
      { files: [data], validation: [] },
      config,
      false,
      [],
      [],
    );
    const run = await turns(session, () => undefined);
    const stepped = await turns(session, () => session.step());
    await session.settle();
    return { kept, alone, run, stepped };
  });
  // 'it is|', and then its answer, whose last token was not computed, '|why|'.
  assert.deepEqual(
    [kept.first.prompt, kept.second.prompt],
    [
      [0, 6],
      [9, 6],
    ],
  );
  assert.deepEqual([alone.prompt, alone.ids], [[0, 15], kept.second.ids]);
  assert.deepEqual([run.first.prompt, run.second], [[0, 6], kept.second]);
  // The first answer reuses what the last one computed; a step between the turns leaves nothing to reuse.
  assert.deepEqual(
    [stepped.first.prompt, stepped.second.prompt],
    [
      [5, 1],
      [0, 15],
    ],
  );
});

test('a sample that fails at step 4 does not keep the run from ending and being saved', async () => {
  const found = await inPage(
    async ({ tabtune }, options) => {
      const { talking, ROWS } = await import('/browser/asking-page.mjs');
      const model = await tabtune.openModel(await talking());
      const data = { text: ROWS, name: 'rows.jsonl' };
      const trainer = await tabtune.Trainer.create({ model, data, ...options });
      await trainer.step(3);
      // The update of step 4 makes weights that are finite and logits that are not.
      await trainer.setLearningRate(1e18);
      const events = [];
      for await (const event of trainer.run()) events.push(event);
      const saved = (await trainer.checkpoints.list()).map(({ step, fault }) => [step, fault]);
      const { state, completedSteps } = trainer;
      await trainer.dispose();
      const warned = events.filter((event) => event.type === 'warning');
      const samples = events.filter(({ type }) => type === 'sample').length;
      return { warned, samples, saved, state, completedSteps };
    },
    {
      ...RUN,
      ...{ optimizer: { type: /** @type {const} */ ('adamw'), weightDecay: 0 } },
      ...{ autosave: true, saveEverySecs: 0, steps: 4 },
      ...{ sampleEvery: 4, samplePrompt: 'it', sample: { maxTokens: 4 } },
    },
  );
  assert.deepEqual([found.state, found.completedSteps, found.samples], ['done', 4, 0]);
  const failed = found.warned.filter(({ code }) => code === 'run.sample');
  assert.equal(failed.length, 1);
  assert.ok(
    failed[0].step === 4 && /a sample failed, and the run continues: /.test(failed[0].message),
    failed[0].message,
  );
  assert.ok(
    found.saved.some(([step, fault]) => step === 4 && fault === undefined),
    JSON.stringify(found.saved),
  );
});
