/** The model of the next run: a small new one, one that the hub has under a name, or the user's files. */
import { escaped, openModel } from 'tabtune';
import type { Model, Progress } from 'tabtune';

import { byId, check, checked } from '../dom.js';
import { onChoice, onDrop } from '../drop.js';
import type { Take } from '../drop.js';
import type { OpenAgain } from '../trying.js';
import { workerUrl } from '../worker.js';
import type { DownloadsPanel } from './downloads.js';
import { HubPanel } from './hub.js';

export class ModelChoice {
  #files: File[] = [];
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
    const take: Take = (files, left) => {
      byId('model-left', HTMLElement).textContent = left;
      if (files.length === 0) return;
      this.#files = files;
      this.#choose('files');
    };
    onChoice(byId('model-files', HTMLInputElement), take);
    onDrop(byId('drop-model', HTMLElement), take, fail);
  }

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

  /** Name of the model; of a folder's files, of the one with the weights, because the first may be any. */
  get name(): string {
    if (this.isNamed) return this.#hub.name;
    const weights = this.#files.find(({ name }) => /\.(gguf|safetensors)$/i.test(name));
    return (weights ?? this.#files[0])?.name ?? 'model';
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
      throw new Error(
        'Choose the model’s files first: one GGUF, or config.json, model.safetensors and every tokenizer file of the folder.',
      );
    return openModel(this.#files, { workerUrl });
  }
}
