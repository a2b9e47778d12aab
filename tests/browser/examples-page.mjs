// Runs in the page: trials of the programs of examples/, each with a small model. They return what the tests compare.
import { ROWS, talking } from '/browser/asking-page.mjs';

const ADDRESS = '/examples/programs.js';
/** The programs and the package that they import: of a bundle that is loaded already, or of the test's. @returns {Promise<any>} */
const programs = async () =>
  /** @type {any} */ (globalThis).examples ?? (await import(/* @vite-ignore */ ADDRESS));

/** Many rows of chats, so that a run has more than a few steps. */
export const chats = (copies = 12) => new File([`${ROWS}\n`.repeat(copies)], 'chats.jsonl');

export async function fineTunes() {
  const { fineTune } = await programs();
  /** @type {string[]} */
  const lines = [];
  const show = (/** @type {string} */ line) => lines.push(line);
  const blob = await fineTune(await talking(), chats(), 'it is', show);
  return { lines, magic: await blob.slice(0, 4).text() };
}

const LABELS = {
  good: ['fine', 'lovely', 'great', 'kind'],
  bad: ['awful', 'poor', 'cruel', 'dull'],
};
const THINGS = ['book', 'day', 'meal', 'song', 'friend', 'house'];

export async function classifies() {
  const { tabtune, trainClassifier, classify } = await programs();
  const labelled = Object.entries(LABELS).flatMap(([label, words]) =>
    words.flatMap((word) => THINGS.map((thing) => [`a ${thing} ${word}`, label])),
  );
  const lines = Array.from({ length: 5 }, () => labelled.map((row) => row.join(','))).flat();
  const rows = new File([['text,label', ...lines].join('\n')], 'rows.csv');
  // Words are tokens, so that a small model learns within a short run.
  const words = labelled.map(([text, label]) => `Text: ${text}\nLabel: ${label}\n`);
  const shape = { hiddenSize: 64, numHiddenLayers: 1, numAttentionHeads: 2, initializerRange: 0.2 };
  const model = await tabtune.newModel(
    { ...shape, maxPositionEmbeddings: 32 },
    { text: words.join('\n') },
    { tokenizer: { train: 360 } },
  );
  const trainer = await trainClassifier(model, rows);
  const found = [];
  for (const [text, label] of labelled.filter((_, at) => at % 6 === 0)) {
    const [first, second] = await classify(trainer, text, ['good', 'bad']);
    found.push({ right: first.label === label, sum: first.probability + second.probability });
  }
  await trainer.dispose();
  return found;
}

export async function continues() {
  const { tabtune, start, train, list, describe, resume, remove } = await programs();
  const trainer = await start(await tabtune.openModel(await talking()), chats(), 'answers');
  const stop = new AbortController();
  trainer.addEventListener('step', (/** @type {any} */ { detail }) => {
    if (detail.step === 2) stop.abort();
  });
  await train(trainer, stop.signal);
  const left = trainer.completedSteps;
  await trainer.dispose();
  // The other programs' runs are kept too.
  const own = async () =>
    (await list()).filter((/** @type {any} */ each) => each.label === 'answers');
  const [saved, ...others] = await own();
  const again = await resume(saved.run);
  const from = again.completedSteps;
  await train(again, new AbortController().signal);
  const { state, completedSteps, snapshot } = again;
  await again.dispose();
  await remove(saved.run);
  return {
    ...{ left, saved: saved.step, others: others.length, line: describe(saved), from, state },
    ...{ completedSteps, totalSteps: snapshot.totalSteps, kept: (await own()).length },
  };
}

export async function compares() {
  const { compare } = await programs();
  return compare(await talking(), chats(), new File([ROWS], 'held.jsonl'), ['it is']);
}

/** The programs that move assets: the addresses of a folder reach every call. @param {{ folder: string }} given */
export async function hosts({ folder }) {
  const { assetsIn, open, resumeNewest, tabtune } = await programs();
  const assets = assetsIn(folder);
  const model = await open(await talking(), assets);
  const trainer = await tabtune.Trainer.create({ model, data: chats(), steps: 2, label: 'hosted' });
  await trainer.step(1);
  await trainer.save();
  await trainer.dispose();
  const again = await resumeNewest(assets);
  const step = again.completedSteps;
  await again.checkpoints.remove();
  await again.dispose();
  return step;
}

/** @param {Blob} blob */
const base64 = async (blob) => {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
};

/** Exports for other programs; wllama answers with the file for llama.cpp. */
export async function exportsFiles() {
  const { tabtune, forLlamaCpp, forOllama, forTransformers, download, complete } = await programs();
  const model = await tabtune.openModel(await talking());
  const gguf = await forLlamaCpp(model);
  const [again, modelfile] = await forOllama(model, 'Be brief.');
  const zip = await forTransformers(model);
  model.dispose();
  download(zip, 'mine.zip');
  return {
    equal: (await base64(gguf)) === (await base64(again)),
    modelfile: await modelfile.text(),
    answer: await complete(gguf, 'it is'),
  };
}

/** A run after three steps, as a file and as a folder, with the losses of the two steps that follow. */
export async function leaves() {
  const { tabtune, asFile, asFolder } = await programs();
  const model = await tabtune.openModel(await talking());
  const trainer = await tabtune.Trainer.create({ model, data: chats(), steps: 5 });
  await trainer.step(3);
  const file = await base64(await asFile(trainer));
  const root = await navigator.storage.getDirectory();
  await asFolder(trainer, await root.getDirectoryHandle('picked', { create: true }));
  const losses = (await trainer.step(2)).map((/** @type {any} */ { loss }) => loss);
  await trainer.dispose();
  return { file, losses, data: await chats().text() };
}

/** Brings back the files of a folder. @param {{ files: [string, string][] }} given */
export async function returns({ files }) {
  const { back } = await programs();
  const bytes = (/** @type {string} */ text) =>
    Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const given = files.map(([name, text]) => new File([bytes(text)], name));
  const trainer = await back(given, chats());
  const step = trainer.completedSteps;
  await trainer.dispose();
  return step;
}
