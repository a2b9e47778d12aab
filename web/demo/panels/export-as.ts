/** The dialog of an export: format, model card and target; then the contents of the receipt. */
import { escaped, EXPORT_FORMATS } from 'tabtune';
import type {
  ExportChoice,
  ExportOptions,
  ExportTarget,
  ModelCard,
  ModelDetails,
  Trainer,
} from 'tabtune';

import { byId, make } from '../dom.js';
import { onChoice } from '../drop.js';
import { optionsOf, write } from '../exporting.js';
import { bytes } from '../format.js';
import { exportName } from '../names.js';
import { pickFile, pickFolder, picks } from '../pick.js';
import { faultOf, progressOf } from '../words.js';
import { receiptOf } from './receipt.js';

/** Returns whether an export in this format is a folder, which is downloaded as a zip. */
const isFolder = (format: ExportChoice['format']): boolean => EXPORT_FORMATS[format].ending === '';

export const choiceName = ({ format, type }: ExportChoice): string =>
  `${EXPORT_FORMATS[format].about}${type === undefined ? '' : `, ${type === 'as-base' ? 'original types' : escaped(type)}`}`;
/** Returns the reason why an export is not possible, or else what it needs and loses. */
export const choiceFacts = ({ ok, reason, lossy, needs, bytes: size }: ExportChoice): string =>
  !ok
    ? escaped(reason ?? 'not possible')
    : [
        size === undefined ? '' : bytes(size),
        needs === undefined ? '' : 'needs the file it came from',
        lossy === undefined ? '' : `without ${escaped(lossy)}`,
      ]
        .filter(Boolean)
        .join(', ');

/** Returns the names of the files that training started from. */
function namesOf(base: ModelDetails['base']): string {
  const files: unknown = base?.['files'];
  const names = Array.isArray(files)
    ? files.map((file: unknown) => escaped(String(Reflect.get(Object(file), 'name'))))
    : [];
  return names.join(', ') || 'the GGUF file that the model came from';
}

/** Returns the statements for the model card that were written into the dialog. */
export function modelCard(): ModelCard {
  const card: ModelCard = {};
  for (const key of ['name', 'license', 'data'] as const) {
    const words = byId(`x-${key}`, HTMLInputElement).value.trim();
    if (words !== '') card[key] = words;
  }
  return card;
}

export class ExportPanel {
  readonly #dialog = byId('export-as', HTMLDialogElement);
  readonly #choice = byId('x-choice', HTMLSelectElement);
  readonly #status = byId('x-status', HTMLElement);
  #trainer: Trainer | undefined;
  /** Names of the exports before their endings. */
  #stem = 'model';
  #details: ModelDetails | undefined;
  #hasAdapter = false;
  /** Files that were chosen as the base. */
  #base: File[] = [];
  #writing: AbortController | undefined;

  constructor(private readonly say: (words: string) => void) {
    this.#choice.addEventListener('input', () => this.#chosen());
    onChoice(byId('x-base', HTMLInputElement), (files) => {
      this.#base = files;
      this.#chosen();
    });
    byId('x-folder', HTMLButtonElement).addEventListener(
      'click',
      () => void this.#write(pickFolder),
    );
    byId('x-file', HTMLButtonElement).addEventListener(
      'click',
      () => void this.#write(() => pickFile(this.#name)),
    );
    byId('x-download', HTMLButtonElement).addEventListener(
      'click',
      () => void this.#write(undefined),
    );
    byId('x-close', HTMLButtonElement).addEventListener('click', () =>
      this.#writing ? this.#writing.abort() : this.#dialog.close(),
    );
    this.#dialog.addEventListener('close', () => this.#writing?.abort());
  }

  /** Offers the formats in which this trainer's weights can be exported, in files whose names begin with `stem`. */
  async open(trainer: Trainer, stem: string): Promise<void> {
    this.#stem = stem;
    const details = await trainer.details();
    this.#hasAdapter = (await trainer.info()).adapter !== null;
    if (trainer !== this.#trainer) this.#base = [];
    this.#trainer = trainer;
    this.#details = details;
    const option = (choice: ExportChoice, index: number): HTMLOptionElement[] =>
      choice.ok
        ? [
            new Option(
              `${choiceName(choice)}${choice.bytes === undefined ? '' : ` · ${bytes(choice.bytes)}`}`,
              String(index),
            ),
          ]
        : [];
    this.#choice.replaceChildren(...details.exports.flatMap(option));
    const without = details.exports.filter(({ ok }) => !ok);
    byId('x-without', HTMLUListElement).replaceChildren(
      ...without.map((choice) => make('li', `${choiceName(choice)}: ${choiceFacts(choice)}`)),
    );
    byId('x-without-box', HTMLDetailsElement).hidden = without.length === 0;
    byId('x-receipt', HTMLElement).replaceChildren();
    this.#status.textContent = '';
    this.#chosen();
    this.#dialog.showModal();
  }

  get #chosenOne(): ExportChoice | undefined {
    return this.#details?.exports[Number(this.#choice.value)];
  }

  /** Returns whether files have to be chosen again; an adapter's base files are at hand. */
  #needs(choice: ExportChoice | undefined): boolean {
    return choice?.needs === 'base' && !this.#hasAdapter;
  }

  get #name(): string {
    const { format } = this.#chosenOne ?? { format: 'safetensors' };
    return exportName(this.#stem, format);
  }

  #chosen(): void {
    const choice = this.#chosenOne;
    const needs = this.#needs(choice);
    byId('x-facts', HTMLElement).textContent = choice ? choiceFacts(choice) : '';
    byId('x-base-box', HTMLElement).hidden = !needs;
    const chosen = this.#base.map(({ name }) => escaped(name)).join(', ');
    byId('x-base-words', HTMLElement).textContent =
      `All that was not trained comes from ${namesOf(this.#details?.base)}. ${chosen === '' ? 'Choose it again.' : `Chosen: ${chosen}.`}`;
    const ready =
      choice !== undefined && this.#writing === undefined && (!needs || this.#base.length > 0);
    byId('x-folder', HTMLButtonElement).hidden =
      !picks('Directory') || !isFolder(choice?.format ?? 'json');
    byId('x-file', HTMLButtonElement).hidden = !picks('SaveFile');
    for (const id of ['x-folder', 'x-file', 'x-download'])
      byId(id, HTMLButtonElement).disabled = !ready;
    byId('x-close', HTMLButtonElement).textContent = this.#writing ? 'Cancel' : 'Close';
  }

  get #options(): ExportOptions {
    const choice = this.#chosenOne ?? { format: 'safetensors', ok: true };
    return {
      ...optionsOf(choice, this.#stem),
      ...(this.#needs(choice) ? { base: this.#base } : {}),
      card: modelCard(),
    };
  }

  /** Writes to the target that `pick` returns, or offers a download. */
  async #write(pick: (() => Promise<ExportTarget | undefined>) | undefined): Promise<void> {
    const trainer = this.#trainer;
    if (!trainer || this.#writing) return;
    const controller = new AbortController();
    this.#writing = controller;
    const show = (words: string): void => {
      this.#status.textContent = words;
      this.say(words);
    };
    try {
      const target = await pick?.();
      if (pick && !target) return;
      this.#chosen();
      show('Writing the model …');
      const options = {
        ...this.#options,
        signal: controller.signal,
        onProgress: (progress: Parameters<typeof progressOf>[0]) => show(progressOf(progress)),
      };
      const receipt = await write(trainer, target ?? this.#name, options);
      byId('x-receipt', HTMLElement).replaceChildren(...receiptOf(receipt));
      show(`Exported: ${choiceName(this.#chosenOne ?? { format: 'safetensors', ok: true })}.`);
    } catch (thrown) {
      show(
        controller.signal.aborted
          ? 'The export was cancelled: what was written is not complete.'
          : faultOf(thrown),
      );
    } finally {
      this.#writing = undefined;
      this.#chosen();
    }
  }
}
