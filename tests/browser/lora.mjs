// The reference cases of adapters in a real browser, each with the base as stored and widened to f32:
//   node tests/browser/lora.mjs CASES.json ASSETS [ID-PREFIX ...]
// Prints one JSON object per case, then {"cases":n,"failed":m}; the exit code is 1 if any failed. Needs the quick build (web/build-wasm.mjs quick).
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { Browser } from './chromium.mjs';
import { serve } from './site.mjs';

// Plain f32 takes at most 4 % of each bound: a GPU sums in another order.
const LOSS = 1e-5; // relative
const GRADIENT = 1e-4; // relative to the norm of the tensor, or to a thousandth of the whole
const NORM = 1e-5; // relative, of a trained tensor
const CHANGE = 1e-3; // relative, of how far it moved
const FIRST = 1e-2; // of a value, relative to the mean movement of its tensor's values

/** Returns the largest error of the results, as a share of its bound, and where it occurs. */
export function judged({ kind, expect }, found) {
  let [worst, measure] = [0, ''];
  const share = (name, error, bound) => {
    const part = error === 0 ? 0 : error / bound;
    if (!(part <= worst)) [worst, measure] = [part, name];
  };
  const near = (name, value, want, bound) => share(name, Math.abs(value - want), bound);
  const relative = (name, value, want, bound) => near(name, value, want, bound * Math.abs(want));
  const equal = (name, value, want) =>
    share(name, JSON.stringify(value) === JSON.stringify(want) ? 0 : Infinity, 1);
  const names = (table) => Object.keys(table).sort();
  if (kind === 'lora_ce') {
    equal('first_ids', found.first_ids, expect.first_ids);
    for (const name of ['mean', 'first', 'last']) relative(name, found[name], expect[name], LOSS);
  } else if (kind === 'lora_grad') {
    equal('names', names(found.norms), names(expect.norms));
    relative('loss', found.loss, expect.loss, LOSS);
    relative('norm', found.norm, expect.norm, GRADIENT);
    for (const [name, want] of Object.entries(expect.norms)) {
      const bound = GRADIENT * Math.max(want, expect.norm / 1000);
      near(name, found.norms[name], want, bound);
      expect.samples[name].forEach((sample, at) =>
        near(`${name}[${at}]`, found.samples[name][at], sample, bound),
      );
    }
  } else {
    equal('names', names(found.tensors), names(expect.tensors));
    expect.losses.forEach((want, at) => relative(`losses[${at}]`, found.losses[at], want, LOSS));
    expect.grad_norms.forEach((want, at) =>
      relative(`grad_norms[${at}]`, found.grad_norms[at], want, GRADIENT),
    );
    relative('final_loss', found.final_loss, expect.final_loss, LOSS);
    relative('adapter_norm', found.adapter_norm, expect.adapter_norm, NORM);
    relative('adapter_change', found.adapter_change, expect.adapter_change, CHANGE);
    for (const [name, want] of Object.entries(expect.tensors)) {
      const { shape, norm, change, first } = found.tensors[name];
      equal(`${name} shape`, shape, want.shape);
      relative(`${name} norm`, norm, want.norm, NORM);
      relative(`${name} change`, change, want.change, CHANGE);
      const bound =
        (FIRST * want.change) / Math.sqrt(shape.reduce((product, dim) => product * dim));
      want.first.forEach((value, at) =>
        near(`${name}[${at}]`, first[at], value, bound || Number.MIN_VALUE),
      );
    }
  }
  return { ok: worst <= 1, worst, measure };
}

/** Starts a browser that runs cases below a folder of assets. */
export async function bench(assets) {
  const site = await serve({
    '/pkg-quick/': 'web/pkg-quick',
    '/browser/': 'tests/browser',
    '/assets/': resolve(assets),
  });
  const browser = await Browser.launch();
  const filesOf = (path) => {
    const place = join(assets, path);
    return (
      statSync(place).isDirectory() ? readdirSync(place).map((name) => `${path}/${name}`) : [path]
    ).map((each) => `/assets/${each}`);
  };
  const { page, record } = await browser.open(`${site.url}/`);
  return {
    /** Runs a case with the base in this storage and judges the result. */
    async answer(test, baseStorage) {
      const ask = {
        test,
        files: filesOf(test.model),
        adapter: filesOf(test.lora),
        text: `/assets/${test.text}`,
        baseStorage,
      };
      const found = await page.evaluate(
        async (ask) => (await import('/browser/lora-page.mjs')).run(ask),
        ask,
      );
      const errors = record.errors.splice(0);
      if (errors.length > 0) throw new Error(errors.join('; '));
      return { ...judged(test, found), storage: found.storage, digest: found.digest, found };
    },
    async close() {
      await browser.close();
      await site.close();
    },
  };
}

if (process.argv[1]?.endsWith('lora.mjs')) {
  const [file, assets, ...prefixes] = process.argv.slice(2);
  if (!assets)
    throw new Error('usage: node tests/browser/lora.mjs CASES.json ASSETS [ID-PREFIX ...]');
  const wanted = ({ id, kind }) =>
    kind.startsWith('lora_') &&
    (prefixes.length === 0 || prefixes.some((prefix) => id.startsWith(prefix)));
  const cases = JSON.parse(readFileSync(file, 'utf8')).cases.filter(wanted);
  const browser = await bench(assets);
  let failed = 0;
  try {
    for (const test of cases) {
      const started = Date.now();
      const line = { id: test.id, kind: test.kind };
      try {
        const [stored, decoded] = [
          await browser.answer(test, 'stored'),
          await browser.answer(test, 'f32'),
        ];
        const { ok, worst, measure, storage, digest } = stored;
        const same = digest === decoded.digest;
        Object.assign(line, {
          ok: ok && decoded.ok && same,
          error: worst,
          bound: 1,
          measure,
          storage,
          digest,
          same,
        });
      } catch (/** @type {any} */ error) {
        // A case that needs a feature and is refused by its name was not to be computed.
        Object.assign(
          line,
          test.feature
            ? { skipped: error.message.split('\n')[0] }
            : { ok: false, message: error.message },
        );
      }
      if (line.ok === false) failed++;
      console.log(JSON.stringify({ ...line, secs: (Date.now() - started) / 1000 }));
    }
  } finally {
    await browser.close();
  }
  console.log(JSON.stringify({ oracle: basename(file), cases: cases.length, failed }));
  process.exitCode = failed === 0 ? 0 : 1;
}
