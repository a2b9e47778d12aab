// What released versions stored in a browser, and exported from it, loads and goes on. golden/checkpoints has a dump of each.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { root } from '../../web/toolchain.mjs';
import { Arena } from '../torture/arena.mjs';

const folder = join(root, 'tests', 'golden', 'checkpoints');
const names = readdirSync(folder).filter((name) => /^storage-\d+\.json$/.test(name));
// The kernels may sum in another order one day; a wrong state is off by a hundred times this.
const CLOSE = 1e-5;

let arena;
before(async () => (arena = await Arena.start({ folders: { '/checkpoints/': 'tests/golden/checkpoints' } })));
after(() => arena?.end());

function close(found, expected) {
  assert.equal(found.length, expected.length);
  for (const [index, loss] of found.entries()) assert.ok(Math.abs(loss / expected[index] - 1) < CLOSE, `${found} and ${expected}`);
}

test('there is a dump of every released version', () => assert.ok(names.includes('storage-1.json')));

for (const name of names) {
  const golden = JSON.parse(readFileSync(join(folder, name), 'utf8'));

  test(`${name}: a database of version ${golden.version} is taken over`, async () => {
    const found = await arena.with((subject) =>
      subject.do(async (s, name) => {
        const golden = await (await fetch(`/checkpoints/${name}`)).json();
        const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
        await new Promise((resolve, reject) => {
          const gone = indexedDB.deleteDatabase('tabtune');
          gone.onsuccess = resolve;
          gone.onerror = () => reject(gone.error);
        });
        await new Promise((resolve, reject) => {
          const request = indexedDB.open('tabtune', golden.version);
          request.onupgradeneeded = () => {
            for (const [store, entries] of Object.entries(golden.stores)) {
              const made = request.result.createObjectStore(store);
              for (const [key, value] of entries) made.put(value?.base64 === undefined ? value : bytes(value.base64), key);
            }
          };
          request.onerror = () => reject(request.error);
          request.onsuccess = () => {
            request.result.close();
            resolve();
          };
        });
        const list = (await (await s.runs()).list()).map(({ run, generation, step }) => ({ run, generation, step }));
        await s.resume({ run: golden.run });
        const losses = await s.step(golden.losses.length);
        const saved = await s.current().save();
        const rates = s.timeline.filter(({ type }) => type === 'step').map(({ learningRate }) => learningRate);
        await s.current().dispose();
        return { list, losses, rates, saved: saved.step };
      }, name),
    );
    assert.deepEqual(found.list, [{ run: golden.run, generation: 2, step: 5 }, { run: golden.run, generation: 1, step: 3 }]);
    close(found.losses, golden.losses);
    // Set by hand before the save.
    assert.deepEqual(found.rates, [1e-3, 1e-3, 1e-3]);
    assert.equal(found.saved, 5 + golden.losses.length);
  });

  test(`${name}: its exported file is taken in`, async () => {
    const losses = await arena.with((subject) =>
      subject.do(async (s, { file, count }) => {
        const { run } = await (await s.runs()).importFile(await (await fetch(`/checkpoints/${file}`)).blob());
        await s.resume({ run });
        const losses = await s.step(count);
        await s.current().dispose();
        return losses;
      }, { file: name.replace('.json', '.tabtune'), count: golden.losses.length }),
    );
    close(losses, golden.losses);
  });
}
