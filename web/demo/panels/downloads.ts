/** The downloads that this browser keeps: the models by name, with their bytes, each with a button that removes it. */
import { escaped, listDownloads, removeDownloads } from 'tabtune';
import type { DownloadInfo } from 'tabtune';

import { actionButton, byId, make } from '../dom.js';
import { bytes, counted } from '../format.js';
import { showFault } from '../words.js';
import { workerUrl } from '../worker.js';

/** Returns the repository of a download, `hf:owner/name`, or its address. */
const sourceOf = (name: string): string => /^hf:[^@]+(?=@)/.exec(name)?.[0] ?? name;

export class DownloadsPanel {
  #removed: (names: string[]) => void = () => undefined;
  readonly #fault = byId('downloads-fault', HTMLElement);

  /** Sets the function that gets the names of downloads that were removed. */
  onRemoved(act: (names: string[]) => void): void {
    this.#removed = act;
  }

  /** Shows the downloads, and returns them. */
  async refresh(): Promise<DownloadInfo[]> {
    // The list of runs reports what keeps a worker from starting.
    const found = await listDownloads({ workerUrl }).catch(() => []);
    const groups = new Map<string, DownloadInfo[]>();
    for (const each of found) {
      const source = sourceOf(each.name);
      groups.set(source, [...(groups.get(source) ?? []), each]);
    }
    byId('downloads-list', HTMLUListElement).replaceChildren(
      ...[...groups].map(([source, files]) => this.#item(source, files, groups.size === 1)),
    );
    byId('downloads', HTMLElement).hidden = groups.size === 0;
    return found;
  }

  #item(source: string, files: readonly DownloadInfo[], isOnly: boolean): HTMLLIElement {
    const size = files.reduce((sum, each) => sum + each.bytes, 0);
    const parts = files.filter(({ complete }) => !complete).length;
    const partly = parts === 0 ? '' : `, ${parts === 1 ? 'one' : parts} of them in part`;
    const name = escaped(source);
    const item = make('li');
    const facts = make('div');
    facts.append(
      make('strong', name),
      make('div', `${bytes(size)} in ${counted(files.length, 'file')}${partly}`, 'meta'),
    );
    // Without names, the lists of files that the hub sent are removed too.
    const names = isOnly ? undefined : source;
    item.append(
      facts,
      actionButton('Remove', `Remove the download ${name}`, () => {
        this.#remove(names).catch((thrown: unknown) => showFault(this.#fault, thrown));
      }),
    );
    return item;
  }

  async #remove(names: string | undefined): Promise<void> {
    this.#fault.hidden = true;
    this.#removed(await removeDownloads(names, { workerUrl }));
    await this.refresh();
  }
}
