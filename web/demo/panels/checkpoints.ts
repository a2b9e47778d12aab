/** The saved runs of this browser: resume, download, delete. */
import { escaped, openSavedRuns } from 'tabtune';
import type { CheckpointInfo, SavedRuns } from 'tabtune';

import { actionButton, byId, download, make } from '../dom.js';
import { bytes, grouped, when } from '../format.js';

export class CheckpointPanel {
  #runs: Promise<SavedRuns> | undefined;

  constructor(
    private readonly onResume: (info: CheckpointInfo) => void,
    private readonly onError: (thrown: unknown) => void,
  ) {}

  #store(): Promise<SavedRuns> {
    return (this.#runs ??= openSavedRuns());
  }

  async refresh(): Promise<void> {
    try {
      const found = await (await this.#store()).list();
      byId('checkpoints', HTMLUListElement).replaceChildren(...found.map((info) => this.#item(info)));
      byId('checkpoints-empty', HTMLElement).hidden = found.length > 0;
      await this.#storageLine();
    } catch (thrown) {
      this.onError(thrown);
    }
  }

  #item(info: CheckpointInfo): HTMLLIElement {
    const item = make('li');
    const facts = make('div');
    const name = `${escaped(info.label)}, step ${grouped(info.step)}`;
    const loss = info.loss === undefined ? '' : ` · loss ${info.loss.toFixed(3)}`;
    facts.append(make('strong', name), make('div', `${when(info.savedAt)} · step ${grouped(info.step)} of ${grouped(info.totalSteps)}${loss} · ${bytes(info.bytes)}`, 'meta'));
    const acts = make('div', '', 'acts');
    acts.append(
      actionButton('Resume', `Resume ${name}`, () => this.onResume(info)),
      actionButton('Download', `Download ${name}`, () => void this.#download(info)),
      actionButton('Delete', `Delete ${name}`, () => void this.#remove(info, name)),
    );
    item.append(facts, acts);
    return item;
  }

  async #download({ run, generation }: CheckpointInfo): Promise<void> {
    try {
      const { name, blob } = await (await this.#store()).exportFile(run, generation);
      download(name, blob);
    } catch (thrown) {
      this.onError(thrown);
    }
  }

  async #remove({ run, generation }: CheckpointInfo, name: string): Promise<void> {
    if (!confirm(`Delete the checkpoint “${name}”? This cannot be undone.`)) return;
    try {
      await (await this.#store()).remove(run, generation);
    } catch (thrown) {
      this.onError(thrown);
    }
    await this.refresh();
  }

  async #storageLine(): Promise<void> {
    const { usage, quota } = await navigator.storage.estimate();
    const persisted = await navigator.storage.persisted();
    const room = usage === undefined || quota === undefined ? '' : `${bytes(usage)} used of ${bytes(quota)} that this browser allows. `;
    byId('storage', HTMLElement).textContent = `${room}${persisted ? 'The browser has promised to keep it.' : 'The browser may clear it when the disk is full: download what you want to keep.'}`;
  }
}
