// Writes what the built package stores in a browser for a small run, and what the run goes on with:
//   node tests/golden/checkpoints/dump_storage.mjs NAME
// makes NAME.json (the database, store by store, and the losses of the next steps) and NAME.tabtune (the exported file).
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Arena, TINY } from '../../torture/arena.mjs';

const [name] = process.argv.slice(2);
if (!name) throw new Error('usage: node tests/golden/checkpoints/dump_storage.mjs NAME');
// Options that every version knows.
const { autosave, ...options } = TINY.options;
const setting = { shape: { ...TINY.shape, hiddenSize: 8 }, text: TINY.text.slice(0, 600), options: { ...options, steps: 100, lrScheduler: { type: 'wsd', decaySteps: 5 } } };

const arena = await Arena.start();
try {
  const subject = await arena.subject();
  const { dump, file, losses } = await subject.do(async (s, setting) => {
    const base64 = (bytes) => btoa(Array.from(new Uint8Array(bytes), (byte) => String.fromCharCode(byte)).join(''));
    const run = await s.create(setting);
    await s.step(3);
    await s.current().save();
    await s.step(2);
    await s.current().setLearningRate(1e-3);
    await s.current().save();
    const { blob } = await s.current().checkpoints.exportFile();
    const losses = await s.step(3);
    await s.current().dispose();
    const base = await s.database();
    const stores = {};
    for (const store of base.objectStoreNames) {
      const entries = [];
      await new Promise((resolve, reject) => {
        const request = base.transaction(store).objectStore(store).openCursor();
        request.onerror = () => reject(request.error);
        request.onsuccess = () => {
          const cursor = request.result;
          if (!cursor) return resolve();
          const { key, value } = cursor;
          entries.push([key, value instanceof ArrayBuffer ? { base64: base64(value) } : value]);
          cursor.continue();
        };
      });
      stores[store] = entries;
    }
    return { dump: { version: base.version, run, stores }, file: base64(await blob.arrayBuffer()), losses };
  }, setting);
  const adapter = `Chromium ${arena.browser.version}, SwiftShader`;
  writeFileSync(join(import.meta.dirname, `${name}.json`), `${JSON.stringify({ adapter, losses, ...dump })}\n`);
  writeFileSync(join(import.meta.dirname, `${name}.tabtune`), Buffer.from(file, 'base64'));
  console.log(`${name}: version ${dump.version}, losses ${losses}`);
} finally {
  await arena.end();
}
