// A run crosses from the browser to the native program and back, as one file and as a folder.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Arena, TINY, differences } from './arena.mjs';
import { native } from './files.mjs';

const CLOSE = 1e-3; // two adapters over ten steps

/** Returns the losses that the native program prints for the next steps. */
function trained(binary, from, data, out, count, first) {
  const given = [
    'train',
    '--json',
    '--resume',
    from,
    '--data',
    data,
    '--out',
    out,
    '--stop-at',
    String(first + count),
  ];
  const lines = execFileSync(binary, given, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  return lines
    .filter(({ loss, step }) => loss !== undefined && step > first)
    .map(({ loss }) => loss);
}

export async function crossing(_, tally, { short }) {
  const folder = mkdtempSync(join(tmpdir(), 'tabtune-crossing-'));
  const binary = await native();
  const arena = await Arena.start({ folders: { '/crossing/': folder } });
  const data = join(folder, 'text.txt');
  writeFileSync(data, TINY.text);
  try {
    const made = await arena.inPage(async (s, setting) => {
      const base64 = async (blob) => {
        const bytes = new Uint8Array(await blob.arrayBuffer());
        let text = '';
        for (const byte of bytes) text += String.fromCharCode(byte);
        return btoa(text);
      };
      const run = await s.create(setting);
      await s.step(3);
      await s.current().save();
      const file = await base64(await s.current().checkpoints.exportFile());
      const root = await navigator.storage.getDirectory();
      const place = await root.getDirectoryHandle('picked', { create: true });
      await s.current().checkpoints.exportFolder(place);
      const files = [];
      const gather = async (handle) => {
        for await (const entry of handle.values()) {
          if (entry.kind === 'directory') await gather(entry);
          else files.push([entry.name, await base64(await entry.getFile())]);
        }
      };
      await gather(place);
      const losses = await s.step(10);
      await s.current().dispose();
      return { run, file, files, losses };
    }, TINY);
    const file = join(folder, 'run.tabtune');
    writeFileSync(file, Buffer.from(made.file, 'base64'));
    const picked = mkdtempSync(join(folder, 'picked-'));
    for (const [name, bytes] of made.files)
      writeFileSync(join(picked, name), Buffer.from(bytes, 'base64'));
    // In the short form the folder that the native program writes is imported, but the one that the browser wrote is not exported.
    for (const [how, from] of short
      ? [['.tabtune', file]]
      : [
          ['.tabtune', file],
          ['folder', picked],
        ]) {
      const fault = `browser → ${how} → native → browser`;
      try {
        const back = join(folder, `native-${how.replace('.', '')}`);
        const same = trained(binary, from, data, back, 0, 3);
        const wrong = differences('steps made by a resume that stops at once', same, []);
        // Nothing was trained: weights and state must be the exported bytes.
        for (const name of ['model.safetensors', 'optimizer.safetensors']) {
          const [sent] = made.files.filter(([each]) => each === name);
          if (sent && !readFileSync(join(back, name)).equals(Buffer.from(sent[1], 'base64')))
            wrong.push(`${name} has other bytes`);
        }
        const losses = trained(
          binary,
          from,
          data,
          join(folder, `further-${how.replace('.', '')}`),
          10,
          3,
        );
        for (const [index, loss] of made.losses.entries()) {
          if (!(Math.abs(losses[index] / loss - 1) <= CLOSE))
            wrong.push(`step ${4 + index}: ${losses[index]} natively, ${loss} in the browser`);
        }
        const names = readdirSync(back);
        const returned = await arena.with((subject) =>
          subject
            .do(
              async (s, { base, names, text }) => {
                const files = await Promise.all(
                  names.map(
                    async (name) => new File([await (await fetch(`${base}/${name}`)).blob()], name),
                  ),
                );
                const { run } = await (await s.runs()).importFile(files);
                const from = await s.resume({ run, data: { text } });
                const losses = await s.step(10);
                await s.current().dispose();
                return { from, losses };
              },
              { base: `/crossing/native-${how.replace('.', '')}`, names, text: TINY.text },
            )
            .catch((error) => ({ failed: error.message.split('\n')[0] })),
        );
        wrong.push(
          ...('failed' in returned
            ? [returned.failed]
            : differences('back in the browser', returned, { from: 3, losses: made.losses })),
        );
        tally.add(fault, wrong);
      } catch (/** @type {any} */ error) {
        tally.add(fault, [error.message.slice(0, 400)]);
      }
    }
  } finally {
    await arena.end();
    rmSync(folder, { recursive: true });
  }
}
