// Runs in the page: one trainer under test, a timeline of its reports, and a channel to the hook in its worker.
import { modelFiles, someTokens } from './llama-files.mjs';

const tabtune = await import('/dist/index.js');
export { modelFiles, someTokens, tabtune };

/** All events so far, with the page's clock. */
export const timeline = [];
let trainer;
let hook;
let asked = 0;

const now = () => performance.timeOrigin + performance.now();

/** Returns a function that starts the package's worker behind the hook; its n-th call uses the n-th plan. */
export function workers(plans = []) {
  let next = 0;
  return () => {
    const plan = { ...plans[Math.min(next++, plans.length)], id: crypto.randomUUID() };
    // The channel to the last worker remains open: messages that it sent before it ended may still be on their way.
    const channel = new BroadcastChannel(`faults ${plan.id}`);
    const waiting = new Map();
    hook = { channel, waiting };
    channel.onmessage = ({ data }) => {
      if ('fired' in data) timeline.push({ at: data.at, type: 'fired', fault: data.fired });
      waiting.get(data.id)?.(data.reply);
      waiting.delete(data.id);
    };
    timeline.push({ at: now(), type: 'worker' });
    return new Worker(`/torture/worker.mjs?plan=${encodeURIComponent(JSON.stringify(plan))}`, {
      type: 'module',
    });
  };
}

/** Sends a command to the hook of the newest worker. */
export function tell(command, more = {}) {
  const id = ++asked;
  return new Promise((resolve) => {
    hook.waiting.set(id, resolve);
    hook.channel.postMessage({ id, command, ...more });
  });
}

/** Returns the outcome of a promise, in a form that can be passed to the test. */
export async function settled(promise) {
  const started = now();
  try {
    return { ok: true, value: await promise, ms: now() - started };
  } catch (/** @type {any} */ error) {
    return {
      ok: false,
      name: error.name,
      code: error.code,
      word: error.detail?.code,
      detail: error.detail,
      step: error.detail?.step,
      recovered: error.detail?.recovered,
      message: error.message,
      ms: now() - started,
    };
  }
}

export function adopt(made) {
  trainer = made;
  for (const type of ['step', 'sample', 'eval', 'checkpoint', 'warning', 'state']) {
    made.addEventListener(type, ({ detail }) => timeline.push({ at: now(), ...detail }));
  }
  return made.runId;
}

export const current = () => trainer;

/**
 * Data and model of a run, made by `TINY` and by parts: a shape or sizes, a text, options, plans for its workers.
 * @typedef {{ shape?: object, sizes?: import('./llama-files.mjs').Sizes, text?: string, options?: object, plans?: object[] }} Setting
 */

/**
 * Returns the model of a setting: new weights of a shape, or the files of `sizes`.
 * @param {Setting} setting @param {object[]} [plans]
 */
export async function model({ shape, sizes, text }, plans) {
  const worker = workers(plans);
  return sizes
    ? tabtune.openModel(modelFiles(sizes), { worker })
    : tabtune.newModel(shape ?? {}, { text: text ?? '' }, { worker });
}

/** Returns the data of a setting. @param {Setting} setting @returns {import('tabtune').DataInput} */
export const dataOf = ({ sizes, text = '' }) => (sizes ? { tokens: someTokens(2000) } : { text });

/** Creates a new run; `plans` are for its workers. @param {Setting} setting */
export async function create({ options, plans, ...setting }) {
  return adopt(
    await tabtune.Trainer.create({
      model: await model(setting, plans),
      data: dataOf(setting),
      ...options,
    }),
  );
}

/** @param {import('tabtune').ResumeOptions & { plans?: object[] }} options */
export async function resume({ plans, ...options }) {
  adopt(await tabtune.Trainer.resume({ ...options, worker: workers(plans) }));
  return trainer.completedSteps;
}

export const step = async (count) => (await trainer.step(count)).map(({ loss }) => loss);

/** Runs to the end, or for `maxSteps`. */
export async function run(options = {}) {
  for await (const event of trainer.run(options)) void event;
}

/** Saves, and reports it outside of the browser before anything else happens. */
export async function saveAloud() {
  const { run, generation, step } = await trainer.save();
  console.info(`saved ${JSON.stringify({ run, generation, step })}`);
  return { run, generation, step };
}

/** Returns the last reported losses by step, and the steps that were reported with two different values. */
export function losses() {
  const found = {};
  const changed = [];
  for (const { type, step, loss } of timeline) {
    if (type !== 'step') continue;
    if (step in found && found[step] !== loss) changed.push(step);
    found[step] = loss;
  }
  return { found, changed };
}

const hex = (buffer) =>
  Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, '0')).join('');
export const digest = async (blob) =>
  hex(await crypto.subtle.digest('SHA-256', await blob.arrayBuffer()));

/** Returns digests of the exported files, by name. */
export async function digests() {
  const files = await trainer.exportFiles();
  return Object.fromEntries(
    await Promise.all(files.map(async ({ name, blob }) => [name, await digest(blob)])),
  );
}

let opened;
/** Returns the saved runs, through one worker for the whole page. */
export const runs = () => (opened ??= tabtune.openSavedRuns());

/** Opens the database independently of the package. */
export function database(version) {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open('tabtune', version);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

const answered = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** Flips one bit of a stored piece; calling it again with the same numbers restores it. */
export async function flip({ run, generation, index, bit }) {
  const base = await database();
  const transaction = base.transaction('chunks', 'readwrite', { durability: 'strict' });
  const done = new Promise((resolve, reject) => {
    transaction.oncomplete = resolve;
    transaction.onabort = () => reject(transaction.error);
  });
  const store = transaction.objectStore('chunks');
  const bytes = new Uint8Array(await answered(store.get([run, generation, index])));
  bytes[bit >> 3] ^= 1 << (bit & 7);
  store.put(bytes.buffer, [run, generation, index]);
  await done;
  base.close();
}

/** Returns the lengths of the stored pieces of a generation, in order. */
export async function pieces({ run, generation }) {
  const base = await database();
  const store = base.transaction('chunks').objectStore('chunks');
  const range = IDBKeyRange.bound([run, generation, 0], [run, generation, Number.MAX_SAFE_INTEGER]);
  const all = (await answered(store.getAll(range))).map((bytes) => bytes.byteLength);
  base.close();
  return all;
}

/** Waits until no tab holds the run; returns how long that took. */
export async function freed(run) {
  const from = performance.now();
  const held = async () =>
    (await navigator.locks.query()).held?.some(({ name }) => name?.includes(run));
  while ((await held()) && performance.now() - from < 5000)
    await new Promise((done) => setTimeout(done, 5));
  return performance.now() - from;
}

/** Returns the state that a new page finds of a run that is not held any more: its generations, the torn ones among them, and the next two losses. */
export async function takenUp(run) {
  await freed(run);
  const all = await runs();
  const list = await all.list({ run });
  const torn = [];
  for (const { generation } of list)
    if (!(await settled(all.exportFile(run, { generation }))).ok) torn.push(generation);
  const from = timeline.length;
  const resumed = await settled(resume({ run }));
  if (!resumed.ok) return { list, torn, resumed };
  const losses = await step(2);
  const warnings = timeline
    .slice(from)
    .filter(({ type }) => type === 'warning')
    .map(({ code }) => code);
  await trainer.dispose();
  return { list, torn, resumed, losses, warnings };
}
