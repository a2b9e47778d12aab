/** A model by name: the field for it, the files that its repository has for it with their progress, and the refusals of the hub. */
import { escaped, openModel } from 'tabtune';
import type { Model, OpenOptions, Progress } from 'tabtune';

import { byId, make } from '../dom.js';
import { bytes, counted } from '../format.js';
import { SUGGESTED } from '../hub-models.js';
import { hubNameOf, shortNameOf } from '../hub-name.js';
import { codeOf, progressOf, showFault } from '../words.js';
import type { OpenAgain } from '../subject.js';
import { workerUrl } from '../worker.js';
import type { DownloadsPanel } from './downloads.js';

/** Number of files that are named, and of characters of a name. */
const FILES = 12;
const NAME = 64;
const cut = (name: string): string =>
  escaped(name.length > NAME ? `${name.slice(0, NAME - 1)}…` : name);

/** Fields that appear when a refusal asks for them. */
const ASKED: Readonly<Record<string, string>> = {
  'hub.gated': 'hub-token-box',
  'hub.unknown': 'hub-token-box',
  'hub.files': 'hub-quant-box',
  'download.room': 'hub-unkept-box',
};

/** A model that somebody asked for, with the fields as they were. */
interface Wanted {
  typed: string;
  name: ReturnType<typeof hubNameOf>;
  options: Pick<OpenOptions, 'token' | 'quant' | 'keepDownloads'>;
}

export class HubPanel {
  #wanted: Wanted | undefined;
  #opening: AbortController | undefined;
  /** The failure that is shown here, or a stop, which needs no words. */
  #shown: unknown;
  /** Short name of the model that was asked for last, even if it was refused. */
  name = 'A model by name';
  /** Sizes of the model's files by their names. */
  readonly #files = new Map<string, number>();
  /** Repository and commit of the model, as downloads are named. */
  #from: string | undefined;
  readonly #name = byId('hub-name', HTMLInputElement);
  readonly #token = byId('hub-token', HTMLInputElement);
  readonly #quant = byId('hub-quant', HTMLInputElement);
  readonly #unkept = byId('hub-unkept', HTMLInputElement);
  readonly #fault = byId('hub-fault', HTMLElement);

  /** `choose` is called when a name is to be opened, which `open` does. */
  constructor(
    private readonly choose: () => void,
    private readonly downloads: DownloadsPanel,
  ) {
    byId('hub-open', HTMLButtonElement).addEventListener('click', () => this.confirm());
    byId('hub-stop', HTMLButtonElement).addEventListener('click', () => this.stop());
    for (const field of [this.#name, this.#token, this.#quant])
      field.addEventListener('keydown', ({ key, isComposing }) => {
        if (key === 'Enter' && !isComposing) this.confirm();
      });
    byId('hub-suggested', HTMLUListElement).replaceChildren(
      ...SUGGESTED.map(({ name, facts }) => {
        const item = make('li');
        const button = make('button', name);
        button.type = 'button';
        button.addEventListener('click', () => {
          this.#name.value = name;
          this.confirm();
        });
        item.append(button, make('span', facts, 'facts'));
        return item;
      }),
    );
  }

  /** All that an opening depends on. */
  get #typed(): string {
    const fields = [this.#name, this.#token, this.#quant].map(({ value }) => value.trim());
    return JSON.stringify([...fields, this.#unkept.checked]);
  }

  /** Returns whether something else is typed than the model that was opened. */
  get isPending(): boolean {
    return this.#wanted?.typed !== this.#typed;
  }

  /** Opens the model once more that was asked for last; undefined without one. */
  get again(): OpenAgain | undefined {
    const wanted = this.#wanted;
    return (
      wanted && ((options) => openModel(wanted.name, { ...wanted.options, ...options, workerUrl }))
    );
  }

  /** Returns whether this panel shows the error, so that no other part of the page needs to. */
  shows(thrown: unknown): boolean {
    return thrown === this.#shown;
  }

  /** Asks for the model that is typed. */
  confirm(): void {
    this.#wanted = undefined;
    this.#clear();
    const [token, quant] = [this.#token.value.trim(), this.#quant.value.trim()];
    try {
      const name = hubNameOf(this.#name.value);
      this.name = shortNameOf(name);
      this.#wanted = {
        typed: this.#typed,
        name,
        options: {
          token: token || undefined,
          quant: quant || undefined,
          keepDownloads: !this.#unkept.checked,
        },
      };
    } catch (thrown) {
      this.#refused(thrown);
    }
    this.choose();
  }

  /** Forgets the model if its downloads are among these, which were removed; it can be asked for again. Returns whether it did. */
  forget(names: readonly string[]): boolean {
    const from = this.#from;
    if (from === undefined || !names.some((name) => name.startsWith(`${from}/`))) return false;
    this.#wanted = undefined;
    this.#clear();
    this.#say('Removed. Open downloads it again.');
    return true;
  }

  stop(): void {
    this.#opening?.abort();
  }

  /** Opens the model that was asked for: its small files and the beginnings of its weights, which is enough to plan a run. */
  async open(): Promise<Model> {
    const wanted = this.#wanted;
    if (!wanted) throw this.#unnamed();
    this.#clear();
    const controller = new AbortController();
    this.#opening = controller;
    const isCurrent = (): boolean => this.#opening === controller;
    this.#say('Asking the hub which files there are …');
    byId('hub-stop', HTMLButtonElement).hidden = false;
    try {
      const model = await openModel(wanted.name, {
        ...wanted.options,
        workerUrl,
        signal: controller.signal,
        onProgress: (progress) => isCurrent() && this.show(progress),
      });
      const hub = model.base?.hub;
      if (hub) this.#from = `hf:${hub.repo}@${hub.commit}`;
      return model;
    } catch (thrown) {
      if (isCurrent()) {
        // Only somebody who presses Open or Train asks the hub again.
        this.#wanted = undefined;
        this.#refused(thrown, controller.signal.aborted);
      }
      throw thrown;
    } finally {
      if (isCurrent()) {
        this.#opening = undefined;
        byId('hub-stop', HTMLButtonElement).hidden = true;
        this.show(undefined);
      }
    }
  }

  /** Shows the progress of an opening, or of a start, which loads the weights; undefined if it has ended. */
  show(progress: Progress | undefined): void {
    const bar = byId('hub-progress', HTMLElement);
    const { phase, file, fraction = 0, total = 0 } = progress ?? {};
    bar.hidden = phase !== 'download' || file === undefined;
    if (progress === undefined) void this.#summarise();
    if (bar.hidden || progress === undefined || file === undefined) return;
    this.#files.set(file, total);
    const more = this.#files.size - FILES;
    const list = [...this.#files]
      .slice(0, FILES)
      .map(([name, size]) => `${cut(name)}\u00a0${bytes(size)}`);
    const said = `${counted(this.#files.size, 'file')}, ${bytes(this.#total)}: ${list.join(', ')}${more > 0 ? `, and ${more} more` : ''}.`;
    const files = byId('hub-files', HTMLElement);
    // The same text set again would be announced again.
    if (files.textContent !== said) files.textContent = said;
    bar.setAttribute('aria-valuenow', String(Math.round(fraction * 100)));
    bar.querySelector('span')?.style.setProperty('transform', `scaleX(${fraction})`);
    this.#say(progressOf(progress));
  }

  /** Returns the failure that is shown already, or else one that asks for a name. */
  #unnamed(): Error {
    if (this.#shown instanceof Error) return this.#shown;
    const words = 'Type the name of a model, and press Open.';
    this.#say(words);
    return (this.#shown = new Error(words));
  }

  get #total(): number {
    return [...this.#files.values()].reduce((sum, size) => sum + size, 0);
  }

  #say(words: string): void {
    byId('hub-said', HTMLElement).textContent = words;
  }

  #clear(): void {
    this.#shown = undefined;
    this.#from = undefined;
    this.#files.clear();
    this.#fault.hidden = true;
    for (const id of ['hub-files', 'hub-said', 'model-facts'])
      byId(id, HTMLElement).textContent = '';
  }

  /** Says how much of an open model is still to be downloaded. */
  async #summarise(): Promise<void> {
    const kept = await this.downloads.refresh();
    const from = this.#from;
    if (this.#opening || from === undefined) return;
    const there = new Map(kept.map(({ name, bytes: size }) => [name, size]));
    const left = [...this.#files].reduce(
      (sum, [file, size]) => sum + Math.max(0, size - (there.get(`${from}/${file}`) ?? 0)),
      0,
    );
    const commit = `Commit ${from.replace(/^.*@/, '').slice(0, 12)}.`;
    this.#say(
      left === 0
        ? `${commit} All of it is kept on this device.`
        : `${commit} Up to ${bytes(left)} of it are downloaded when training starts.`,
    );
    if ([...this.#files.keys()].some((file) => /\.gguf$/i.test(file)))
      byId('hub-quant-box', HTMLElement).hidden = false;
  }

  #refused(thrown: unknown, stopped = false): void {
    this.#clear();
    this.#shown = thrown;
    if (stopped) return this.#say('Stopped. Bytes that were downloaded are kept.');
    showFault(this.#fault, thrown);
    linkIn(this.#fault);
    const box = ASKED[codeOf(thrown)];
    if (box !== undefined) byId(box, HTMLElement).hidden = false;
  }
}

/** Makes a link of the hub's address in a refusal: of the page where its terms are accepted. */
function linkIn(fault: HTMLElement): void {
  const [first] = fault.childNodes;
  const text = first?.textContent ?? '';
  const address = /https:\/\/huggingface\.co\/[\w./-]*\w/.exec(text)?.[0];
  if (first === undefined || address === undefined) return;
  const link = make('a', address);
  Object.assign(link, { href: address, target: '_blank', rel: 'noopener noreferrer' });
  const at = text.indexOf(address);
  first.replaceWith(text.slice(0, at), link, text.slice(at + address.length));
}
