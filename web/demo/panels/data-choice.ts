/** The data of the next run: the text of this page, the user's files, or a text that is pasted. */
import { escaped } from 'tabtune';
import type { DataInput } from 'tabtune';

import austen from '../assets/pride-and-prejudice.txt?raw';
import { byId, check, checked } from '../dom.js';
import { onChoice, onDrop } from '../drop.js';
import type { Take } from '../drop.js';
import { bytes } from '../format.js';
import { keepPasted, keptPasted } from '../pasted.js';
import { codeOf, Refused, Unchosen } from '../words.js';
import { EncodingChoice } from './encoding-choice.js';

/** The text of this page. */
export const AUSTEN = { text: austen, name: 'pride-and-prejudice.txt' };

/** Returns a pasted text as a file, whose name says that it has rows if it begins so: then a fault in them is reported, and not learned. */
export function pastedFile(text: string): File {
  const rows = /^\s*\{/.test(text) && /\}\s*\n\s*\{/.test(text);
  const ending = rows ? '.jsonl' : /^\s*(\{|\[\s*\{)/.test(text) ? '.json' : '';
  return new File([text], `pasted text${ending}`, { type: 'text/plain' });
}

export class DataChoice {
  #files: readonly File[] = [];
  #pasted: File | undefined;
  /** Number of times that data were chosen. */
  #count = 0;
  #read: { key: string; data: Promise<DataInput> } | undefined;
  readonly #encoding: EncodingChoice;
  readonly #text = byId('data-text', HTMLTextAreaElement);

  /** `changed` is called when data are chosen, `fail` when dropped files cannot be taken. */
  constructor(
    private readonly changed: () => void,
    fail: (thrown: unknown) => void,
  ) {
    this.#encoding = new EncodingChoice((files) => {
      this.#files = files;
      this.#choose();
    });
    onChoice(byId('data-file', HTMLInputElement), this.take);
    onDrop(byId('drop-data', HTMLElement), this.take, fail);
    const { text, isChosen } = keptPasted();
    this.#text.value = text;
    if (isChosen) check('data', 'paste');
    this.#text.addEventListener('input', () => {
      this.#pasted = undefined;
      this.#count += 1;
      check('data', 'paste');
    });
    byId('drop-data', HTMLElement).addEventListener('input', () => {
      if (checked('data') !== 'file') this.#encoding.forget();
      this.#keep();
    });
    this.#keep();
  }

  /** Takes files as the data. */
  readonly take: Take = (files, left) => {
    byId('data-left', HTMLElement).textContent = left;
    if (files.length === 0) return;
    this.#files = files;
    this.#encoding.forget();
    this.#choose();
  };

  #choose(): void {
    this.#count += 1;
    check('data', 'file');
    this.#keep();
    this.changed();
  }

  #keep(): void {
    const said = keepPasted(this.#text.value, checked('data') === 'paste');
    byId('data-text-kept', HTMLElement).textContent = said;
  }

  /** Identifies the chosen data among all that were chosen. */
  get key(): string {
    return `${checked('data')} ${checked('data') === 'austen' ? 0 : this.#count}`;
  }

  /** The chosen data, which `read` has not looked at yet. */
  get data(): DataInput {
    if (checked('data') === 'paste') {
      const text = this.#text.value;
      if (text.trim() === '') throw new Unchosen('Paste or type a text first.', 'data');
      return (this.#pasted ??= pastedFile(text));
    }
    if (checked('data') !== 'file') return AUSTEN;
    const [first] = this.#files;
    if (!first) throw new Unchosen('Choose a text file first.', 'data');
    return this.#files.length > 1 ? this.#files : first;
  }

  /** Name of the data, for the heading and the list of runs. */
  get name(): string {
    if (checked('data') === 'paste') return 'a pasted text';
    const [first, ...more] = this.#files;
    return checked('data') === 'file'
      ? `${first?.name ?? 'text'}${more.length > 0 ? ` and ${more.length} more` : ''}`
      : 'Pride and Prejudice';
  }

  /** The data as the heading names them. */
  get short(): string {
    return checked('data') === 'austen' ? 'Austen' : escaped(this.name);
  }

  /** Names and sizes of the data. */
  get facts(): string {
    switch (checked('data')) {
      case 'file':
        return this.#files.map(({ name, size }) => `${escaped(name)}, ${bytes(size)}`).join('; ');
      case 'paste':
        return `${bytes(new Blob([this.#text.value]).size)} of text`;
      default:
        return `${bytes(austen.length)} of text, embedded in this page`;
    }
  }

  /** Returns the chosen data; throws if a file among them is neither a text nor rows. */
  read(): Promise<DataInput> {
    const { key } = this;
    if (this.#read?.key !== key) this.#read = { key, data: this.#look() };
    return this.#read.data;
  }

  async #look(): Promise<DataInput> {
    const { data } = this;
    if (checked('data') !== 'file') return data;
    const { kindOf } = await import('../file-kinds.js');
    for (const file of this.#files) {
      const kind = await kindOf(file);
      if (!kind) continue;
      const which = this.#files.length > 1 ? escaped(file.name) : 'This';
      throw new Refused(`${which} is ${kind.is}: ${kind.advice}.`, 'data');
    }
    return data;
  }

  /** Asks for the encoding of the files if that is why they are refused; returns whether it does. */
  async asks(thrown: unknown): Promise<boolean> {
    if (codeOf(thrown) !== 'data.encoding' || checked('data') !== 'file') return false;
    return this.#encoding.ask(this.#files, thrown);
  }
}
