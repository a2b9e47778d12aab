/** The model of the next run: a small new one, one that the hub has under a name, or the user's files. */
import { escaped, openModel } from 'tabtune';
import type { Model, Progress } from 'tabtune';

import { byId, check, checked } from '../dom.js';
import { onChoice, onDrop } from '../drop.js';
import type { Take } from '../drop.js';
import type { OpenAgain } from '../subject.js';
import { Unchosen } from '../words.js';
import { workerUrl } from '../worker.js';
import type { DownloadsPanel } from './downloads.js';
import { HubPanel } from './hub.js';

export class ModelChoice {
  #files: File[] = [];
  /** Name of the folder from which the files come, or that their config.json has; empty if there is none. */
  #folder = '';
  /** Number of times that files or a name were chosen. */
  #count = 0;
  readonly #hub: HubPanel;

  /** `changed` is called when a model is chosen, `fail` when its files cannot be taken. */
  constructor(
    private readonly changed: () => void,
    fail: (thrown: unknown) => void,
    downloads: DownloadsPanel,
  ) {
    this.#hub = new HubPanel(() => this.#choose('hub'), downloads);
    onChoice(byId('model-files', HTMLInputElement), this.take);
    onDrop(byId('drop-model', HTMLElement), this.take, fail);
  }

  /** Takes files as the model. */
  readonly take: Take = (files, left, folder = '') => {
    byId('model-left', HTMLElement).textContent = left;
    if (files.length === 0) return;
    this.#files = files;
    this.#folder = folder;
    this.#choose('files');
  };

  #choose(kind: 'hub' | 'files'): void {
    this.#count += 1;
    check('model', kind);
    this.changed();
  }

  /** True if the model is opened, false if it is a new one. */
  get isOpened(): boolean {
    return checked('model') !== 'scratch';
  }

  /** True if the model has a name of the hub. */
  get isNamed(): boolean {
    return checked('model') === 'hub';
  }

  /** False if the model is downloaded whenever it is opened. */
  get isKept(): boolean {
    return !this.isNamed || !byId('hub-unkept', HTMLInputElement).checked;
  }

  /** Opens the chosen model once more, whatever is chosen by then; undefined for a new one. */
  get again(): OpenAgain | undefined {
    if (!this.isOpened) return undefined;
    if (this.isNamed) return this.#hub.again;
    const files = this.#files;
    return (options) => openModel(files, { ...options, workerUrl });
  }

  /** Identifies the chosen model among all that were chosen. */
  get key(): string {
    return `${checked('model')} ${this.#count}`;
  }

  /** Finds the name of the model that the files of a folder have, if they were chosen without it. */
  async settleName(): Promise<void> {
    const files = this.#files;
    const config = files.find(({ name }) => name === 'config.json');
    if (this.#folder !== '' || !config || files.some(({ name }) => /\.gguf$/i.test(name))) return;
    const name = await nameIn(config);
    if (files === this.#files) this.#folder = name;
  }

  /** Name of the model: of its folder, or else of the file with the weights, because the first may be any. */
  get name(): string {
    if (this.isNamed) return this.#hub.name;
    const of = (ending: RegExp): string | undefined =>
      this.#files.find(({ name }) => ending.test(name))?.name;
    const gguf = of(/\.gguf$/i);
    if (gguf !== undefined || this.#files.length === 0) return gguf ?? 'model';
    const weights = this.#folder || of(/\.safetensors$/i);
    return weights ?? (this.#files.length === 1 ? this.#files[0]?.name : undefined) ?? 'model';
  }

  /** The model as the heading names it. */
  get reader(): string {
    return this.isOpened ? escaped(this.name) : 'A small new Llama';
  }

  /** Returns whether a field is one for a name, which is not a choice until it is confirmed. */
  isTypedIn(field: EventTarget | null): boolean {
    return field instanceof HTMLElement && field.closest('#hub-box') !== null;
  }

  /** Returns whether the error is shown next to the name. */
  shows(thrown: unknown): boolean {
    return this.isNamed && this.#hub.shows(thrown);
  }

  /** Confirms the name that is typed, if another one or none was opened. */
  renew(): void {
    if (this.isNamed && this.#hub.isPending) this.#hub.confirm();
  }

  /** Forgets the model by name if its downloads are among these, which were removed. Returns whether it did. */
  forget(names: readonly string[]): boolean {
    return this.#hub.forget(names) && this.isNamed;
  }

  /** Stops an opening by name. */
  stop(): void {
    this.#hub.stop();
  }

  /** Shows the progress of a start, which loads the weights of a model by name; undefined if it has ended. */
  show(progress: Progress | undefined): void {
    if (this.isNamed) this.#hub.show(progress);
  }

  open(): Promise<Model> {
    if (this.isNamed) return this.#hub.open();
    if (this.#files.length === 0)
      throw new Unchosen(
        'Choose the model’s files first: one GGUF, or config.json, model.safetensors and every tokenizer file of the folder.',
        'model',
      );
    return openModel(this.#files, { workerUrl });
  }
}

/** Returns the short name of the model that a config.json has, which may be a path; an empty one if it has none. */
async function nameIn(config: File): Promise<string> {
  try {
    const found: unknown = JSON.parse(await config.text());
    const name: unknown =
      typeof found === 'object' && found !== null ? Reflect.get(found, '_name_or_path') : '';
    return typeof name === 'string'
      ? (name
          .split(/[\\/]/)
          .filter((part) => /\w/.test(part))
          .at(-1) ?? '')
      : '';
  } catch {
    // The fault is reported where the model is opened.
    return '';
  }
}
