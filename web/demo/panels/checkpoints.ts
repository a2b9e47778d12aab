/** The saved runs of this browser: to resume, fork, keep, export, import, delete. Needs no GPU. */
import { escaped, openSavedRuns } from 'tabtune';
import type { CheckpointInfo, HistoryEntry, SavedRuns, Trainer } from 'tabtune';

import { ask } from '../ask.js';
import { byId, download } from '../dom.js';
import { onChoice, onDrop } from '../drop.js';
import type { Take } from '../drop.js';
import { bytes, grouped } from '../format.js';
import { checkpointName } from '../names.js';
import { pickFolder } from '../pick.js';
import { progressOf, showFault } from '../words.js';
import { answered } from '../patience.js';
import { workerUrl } from '../worker.js';
import { runItem } from './run-item.js';
import type { RunActs } from './run-item.js';

interface Surroundings {
  resume: (info: CheckpointInfo, generation?: number) => void;
  say: (words: string) => void;
  /** Returns the trainer that holds this run, if it belongs to this page. */
  trainerOf: (run: string) => Trainer | undefined;
}
/** Operations on a run's checkpoints, performed by the holder of its lock. */
type Shelf = Pick<
  Trainer['checkpoints'],
  'keep' | 'fork' | 'remove' | 'exportFile' | 'exportFolder'
>;

export class CheckpointPanel {
  #runs: Promise<SavedRuns> | undefined;
  #trains = false;
  #refused = false;
  /** Runs whose list of checkpoints is open. */
  readonly #open = new Set<string>();
  readonly #fault = byId('kept-fault', HTMLElement);

  constructor(private readonly around: Surroundings) {
    onChoice(byId('checkpoint-files', HTMLInputElement), this.take);
    onDrop(byId('drop-checkpoint', HTMLElement), this.take, (thrown) => this.#complain(thrown));
    byId('persist', HTMLButtonElement).addEventListener('click', () =>
      this.#act(() => this.persist()),
    );
  }

  /** Imports files of a run. */
  readonly take: Take = (files, left) => this.#act(() => this.#import(files, left));

  /** Sets if runs can be resumed here, which requires that a GPU was found. */
  trains(possible: boolean): Promise<void> {
    this.#trains = possible;
    byId('kept-help', HTMLElement).hidden = possible;
    return this.refresh();
  }

  #store(): Promise<SavedRuns> {
    this.#runs ??= openSavedRuns({ workerUrl }).catch((thrown: unknown) => {
      this.#runs = undefined;
      throw thrown;
    });
    return this.#runs;
  }

  /** Performs an action and refreshes the list; a failure is shown next to it. */
  #act(work: () => Promise<void>): void {
    this.#fault.hidden = true;
    work()
      .catch((thrown: unknown) => this.#complain(thrown))
      .then(() => this.refresh())
      .catch((thrown: unknown) => this.#complain(thrown));
  }

  #complain(thrown: unknown): void {
    showFault(this.#fault, thrown);
  }

  async refresh(): Promise<void> {
    try {
      const found = await (await this.#store()).list();
      const groups = new Map<string, CheckpointInfo[]>();
      for (const info of found) groups.set(info.run, [...(groups.get(info.run) ?? []), info]);
      const active = document.activeElement?.getAttribute('aria-label');
      const list = byId('checkpoints', HTMLUListElement);
      list.replaceChildren(
        ...[...groups].map(([run, infos]) => runItem(infos, this.#acts(run), this.#open.has(run))),
      );
      // The list is rebuilt, so the focus is restored to the same button.
      if (active)
        [...list.querySelectorAll('button')]
          .find((button) => button.getAttribute('aria-label') === active)
          ?.focus();
      byId('checkpoints-empty', HTMLElement).hidden = found.length > 0;
      await this.#storageLine();
    } catch (thrown) {
      this.#complain(thrown);
    }
  }

  /** Returns the newest readable checkpoint, of `run` or of all runs. */
  async newest(run?: string): Promise<CheckpointInfo | undefined> {
    return (await (await this.#store()).list({ run })).find(({ fault }) => fault === undefined);
  }

  /** Returns the history of a saved run. */
  async history(run: string): Promise<HistoryEntry[]> {
    return (await this.#store()).history(run);
  }

  async #shelf(run: string): Promise<Shelf> {
    const trainer = this.around.trainerOf(run);
    if (trainer) return trainer.checkpoints;
    const runs = await this.#store();
    return {
      keep: (generation, options) => runs.keep(run, generation, options),
      fork: (options) => runs.fork(run, options),
      remove: (options) => runs.remove(run, options),
      exportFile: (options) => runs.exportFile(run, options),
      exportFolder: (handle, options) => runs.exportFolder(run, handle, options),
    };
  }

  #acts(run: string): RunActs {
    const live = this.around.trainerOf(run) !== undefined;
    return {
      live,
      resume: this.#trains ? this.around.resume : undefined,
      opened: (open) => void (open ? this.#open.add(run) : this.#open.delete(run)),
      download: (info) => this.#act(async () => void (await this.download(run, info?.generation))),
      keep: (info) =>
        this.#act(async () => (await this.#shelf(run)).keep(info.generation, { kept: !info.kept })),
      fork: (info) => this.#act(() => this.#fork(info)),
      folder: (info) => this.#act(() => this.#folder(run, info)),
      remove: (info, all) => this.#act(() => this.#remove(run, info, live, all)),
    };
  }

  /** Downloads a checkpoint, by default the newest; returns the name of the file. */
  async download(run: string, generation?: number): Promise<string> {
    this.around.say('Writing the file …');
    const file = await (await this.#shelf(run)).exportFile({ generation });
    const name = checkpointName(file.name);
    download(name, file);
    this.around.say(`${name}: ${bytes(file.size)}.`);
    return name;
  }

  async #fork({ run, generation, label, step }: CheckpointInfo): Promise<void> {
    await (await this.#shelf(run)).fork({ generation, label: `${label}, again from step ${step}` });
    this.around.say(`Forked: the new run continues from step ${grouped(step)}.`);
  }

  async #folder(run: string, info: CheckpointInfo | undefined): Promise<void> {
    const handle = await pickFolder();
    if (!handle) return;
    this.around.say(`Writing into the folder ${escaped(handle.name)} …`);
    await (await this.#shelf(run)).exportFolder(handle, { generation: info?.generation });
    this.around.say(
      `The folder ${escaped(handle.name)} contains the checkpoint. tabtune train --resume continues from it.`,
    );
  }

  async #remove(run: string, info: CheckpointInfo, live: boolean, all = false): Promise<void> {
    const what = all
      ? `the run “${info.label}” with all its checkpoints`
      : `the checkpoint of step ${grouped(info.step)} of “${info.label}”`;
    const answer = await ask(
      `Delete ${all ? 'this run' : 'this checkpoint'}?`,
      `This deletes ${what} from this device. It cannot be undone${live ? '; the run continues' : ''}.`,
      { remove: 'Delete' },
    );
    if (answer === 'remove')
      await (await this.#shelf(run)).remove(all ? {} : { generation: info.generation });
  }

  async #import(files: File[], left: string): Promise<void> {
    const [first] = files;
    if (!first) return this.around.say(left);
    const onProgress = (progress: Parameters<typeof progressOf>[0]): void =>
      this.around.say(progressOf(progress));
    const { label, step } = await (
      await this.#store()
    ).importFile(files.length === 1 ? first : files, { onProgress });
    this.around.say(`Imported: ${escaped(label)}, step ${grouped(step)}. ${left}`.trim());
  }

  /** Asks the browser for persistent storage; must be called within a click. */
  async persist(): Promise<void> {
    const kept = await answered(async () => navigator.storage.persist());
    this.#refused = kept !== undefined && !kept;
    await this.#storageLine();
  }

  async #storageLine(): Promise<void> {
    const [estimate, persisted] = await Promise.all([
      answered(async () => navigator.storage.estimate()),
      answered(async () => navigator.storage.persisted()),
    ]);
    const { usage, quota } = estimate ?? {};
    const room =
      usage === undefined || quota === undefined
        ? ''
        : `${bytes(usage)} used of ${bytes(quota)} that this browser allows. `;
    const promise = persisted
      ? 'The browser has promised to keep it.'
      : persisted === undefined
        ? 'This browser does not say how much it stores, and may clear it at any time. Download what you want to keep.'
        : `${this.#refused ? 'The browser was asked to keep it and did not promise: it' : 'The browser'} may clear it when the disk is full. Download what you want to keep.`;
    byId('storage', HTMLElement).textContent = `${room}${promise}`;
    byId('persist', HTMLButtonElement).hidden = persisted !== false || this.#refused;
  }
}
