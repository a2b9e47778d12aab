// The messages about a person's data: every code of tests/golden/data-words.json, in the package's report before a run and in the run's own, and in
// the page's panel with the rows; and the sequence length, which follows the rows.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { root } from '../../web/toolchain.mjs';
import { demoTests, says, textOf } from './demo-run.mjs';
import { scenarios } from './scenario.mjs';

const GOLDEN = join(root, 'tests/golden');
const { at, inPage } = scenarios();
const { test } = demoTests(at);

/** Files of a case: the model's, some of them replaced, and the data. */
const CASES = JSON.parse(readFileSync(join(GOLDEN, 'data-words.json'), 'utf8')).map(
  ({ model, files, name, text, base64, ...rest }) => {
    const folder = join(GOLDEN, 'inputs', model);
    const read = Object.fromEntries(
      readdirSync(folder).map((file) => [file, readFileSync(join(folder, file))]),
    );
    const own = Object.fromEntries(
      Object.entries(files).map(([file, content]) => [file, Buffer.from(content)]),
    );
    const data = {
      name,
      mimeType: '',
      buffer: text === undefined ? Buffer.from(base64, 'base64') : Buffer.from(text),
    };
    return {
      ...rest,
      data,
      model: Object.entries({ ...read, ...own }).map(([file, buffer]) => ({
        name: file,
        mimeType: '',
        buffer,
      })),
    };
  },
);

const camel = (key) => key.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
const coded = ({ name, buffer }) => ({ name, base64: buffer.toString('base64') });

test('every data code is reported by inspectData and by the run', async () => {
  const cases = CASES.map(({ code, data, model, options }) => ({
    code,
    data: coded(data),
    model: model.map(coded),
    options: Object.fromEntries(Object.entries(options).map(([key, value]) => [camel(key), value])),
  }));
  const found = await inPage(async ({ tabtune, bytesOf }, cases) => {
    /** @param {ReturnType<typeof coded>} content */
    const file = ({ name, base64 }) => new File([bytesOf(base64)], name);
    /** @param {Promise<any>} work @returns {Promise<any>} */
    const settled = (work) => work.catch(({ detail, message }) => ({ code: detail.code, message }));
    const found = [];
    for (const { code, data, model, options } of cases) {
      const opened = await tabtune.openModel(model.map(file));
      const inspected = await settled(
        tabtune.inspectData(file(data), { model: opened, ...options }),
      );
      const short = { steps: 1, batchSize: 1, autosave: false, ...options };
      const given = { model: opened, data: file(data), ...short };
      const run = await settled(tabtune.Trainer.create(given));
      found.push({
        code,
        inspected: inspected.report?.warnings ?? inspected,
        run: run.data?.warnings ?? { code: run.code, message: run.message },
      });
      await run.dispose?.();
      await opened.dispose();
    }
    return found;
  }, cases);
  for (const [at, { code, inspected, run }] of found.entries()) {
    const { refused, lines, data } = CASES[at];
    if (refused) {
      for (const fault of [inspected, run]) {
        assert.equal(fault.code, code, JSON.stringify(fault));
        // All files together may have too few tokens.
        if (code !== 'data.too-short') assert.ok(fault.message.includes(data.name), fault.message);
        for (const line of lines) assert.match(fault.message, new RegExp(`line ${line}\\b`));
      }
      continue;
    }
    assert.deepEqual(run, inspected);
    const warning = inspected.find((each) => each.code === code);
    assert.deepEqual(
      warning?.rows.map(({ line }) => line),
      lines,
      `${code}: ${JSON.stringify(inspected)}`,
    );
  }
});

test('the page shows every data code that chosen files can raise, with its rows', async ({
  demo,
}) => {
  const { page } = await demo();
  const can = CASES.filter(
    ({ options }) => !('form' in options || 'columns' in options || 'on_bad_row' in options),
  );
  // The page writes all words by one rule, so the short form shows two of each kind; the package's test above has every one.
  const kindOf = ({ refused, lines }) => `${refused} ${lines.length > 0}`;
  const nth = (each) => can.filter((other) => kindOf(other) === kindOf(each)).indexOf(each);
  const shown = can.filter((each) => process.env.TABTUNE_FULL !== undefined || nth(each) < 2);
  for (const { code, refused, lines, data, model, options } of shown) {
    await page.setInputFiles('#model-files', model);
    await page.setInputFiles('#data-file', data);
    // A number is typed for the model and data that are chosen.
    if (options.seq_len !== undefined) await page.fill('#s-length', String(options.seq_len));
    const asked = code === 'data.encoding' ? '#data-encoding-ask' : '#lesson-fault';
    const place = refused ? asked : '#lesson-warnings';
    const inFault = code === 'data.too-short' ? 'are needed' : data.name;
    const wanted = lines.length > 0 ? `line ${lines[0]}` : inFault;
    const words = page.locator(place, { hasText: refused ? wanted : code });
    await words.waitFor({ timeout: 60_000 }).catch(async (cause) => {
      const texts = [await textOf(page, '#lesson'), await textOf(page, '#setup-fault')];
      throw new Error(`${code}: ${texts.join(' ')}`, { cause });
    });
    const text = await textOf(page, place);
    if (refused) assert.match(text, /expected|nothing|needed|cannot|neither/, code);
    else if (lines.length > 0) assert.match(text, /Lines? \d/, code);
  }
});

test('the sequence length follows the rows, and is restored for a text', async ({ demo }) => {
  const { page } = await demo();
  const lengthIs = (/** @type {string} */ length) =>
    expect(page.locator('#s-length')).toHaveValue(length);
  const choose = (/** @type {string} */ name, /** @type {string} */ text) =>
    page.setInputFiles('#data-file', { name, mimeType: '', buffer: Buffer.from(text) });
  const before = await page.inputValue('#s-length');
  const row = `${JSON.stringify({ prompt: 'a', completion: 'bc '.repeat(150) })}\n`;
  // 451 characters without an end token are 450 pairs.
  await choose('rows.jsonl', row.repeat(40));
  await lengthIs('512');
  assert.match(await textOf(page, '#lesson-facts'), /sequences? of 512 tokens/);
  assert.doesNotMatch(await textOf(page, '#lesson-warnings'), /data\.long/);
  await choose('text.txt', 'It is a truth. '.repeat(400));
  await lengthIs(before);
  await choose('rows.jsonl', row.repeat(40));
  await lengthIs('512');
  await page.fill('#s-length', '100');
  await choose('rows.jsonl', row.repeat(41));
  await says(page, '#lesson-warnings', 'data.long');
  await lengthIs('100');
  // Only the beginning of a large file is inspected, before the model has read all of it.
  const large = `${JSON.stringify({ text: 'it is a truth '.repeat(8) })}\n`;
  await choose('large.jsonl', large.repeat(20_000));
  await says(page, '#lesson-facts', /^Of the first 1\.0 MB of 2\.5 MB/);
});
