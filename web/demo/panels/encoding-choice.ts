/** Asks in which old encoding a text is, when it is neither UTF-8 nor UTF-16: each shows a line of it, and a likely one is chosen. */
import { escaped, TabtuneError } from 'tabtune';

import { byId } from '../dom.js';
import { counted } from '../format.js';

/** Number of bytes by which an encoding is found, from a little before the first that cannot be read. */
const LOOKED_AT = 64 << 10;
const BEFORE = 200;

export class EncodingChoice {
  readonly #box = byId('data-encoding-box', HTMLElement);
  readonly #select = byId('data-encoding', HTMLSelectElement);
  #asked: { files: readonly File[]; bytes: Uint8Array } | undefined;

  /** `use` gets the files in UTF-8. */
  constructor(private readonly use: (files: File[]) => void) {
    this.#select.addEventListener('input', (event) => {
      // The choice counts once it is confirmed.
      event.stopPropagation();
      void this.#preview();
    });
    byId('data-encoding-use', HTMLButtonElement).addEventListener(
      'click',
      () => void this.#confirm(),
    );
  }

  forget(): void {
    this.#asked = undefined;
    this.#box.hidden = true;
    byId('data-encoding-said', HTMLElement).textContent = '';
  }

  /** Asks for the encoding of the files that the error names; returns whether it can be asked for. */
  async ask(files: readonly File[], thrown: unknown): Promise<boolean> {
    const { refusal, refusals } = thrown instanceof TabtuneError ? thrown.detail : {};
    const { artifact, subject } = refusal ?? refusals?.[0] ?? {};
    const file = files.find(({ name }) => name === artifact) ?? files[0];
    // A text that is packed is decoded after it is unpacked, which is done elsewhere.
    if (!file || /\.gz$/i.test(file.name)) return false;
    const { ENCODINGS, likelyEncoding } = await import('../encodings.js');
    // The position of the first byte that cannot be read; UTF-16 has two bytes per letter.
    const from = Math.max(0, (Number(subject) || 0) - BEFORE) & ~1;
    const bytes = new Uint8Array(await file.slice(from, from + LOOKED_AT).arrayBuffer());
    this.#asked = { files, bytes };
    this.#select.replaceChildren(...ENCODINGS.map(([word, label]) => new Option(label, word)));
    this.#select.value = likelyEncoding(bytes);
    byId('data-encoding-ask', HTMLElement).textContent =
      `${escaped(file.name)} is neither UTF-8 nor UTF-16. Choose the encoding in which this line of it reads well:`;
    this.#box.hidden = false;
    await this.#preview();
    return true;
  }

  async #preview(): Promise<void> {
    const { decoded, telling } = await import('../encodings.js');
    if (!this.#asked) return;
    const line = telling(decoded(this.#asked.bytes, this.#select.value));
    byId('data-encoding-line', HTMLElement).textContent = escaped(line);
  }

  async #confirm(): Promise<void> {
    const { inUtf8 } = await import('../encodings.js');
    const asked = this.#asked;
    if (!asked) return;
    const { files, lost } = await inUtf8(asked.files, this.#select.value);
    // Other files may have been chosen meanwhile.
    if (this.#asked !== asked) return;
    this.forget();
    const without =
      lost === 0 ? '' : ` ${counted(lost, 'place')} of it cannot be read in it, and became \ufffd.`;
    byId('data-encoding-said', HTMLElement).textContent =
      `Read as ${this.#select.selectedOptions[0]?.text ?? ''}.${without}`;
    this.use(files);
  }
}
