/** The list of places that a trained model can go to, each with its file, and with what is typed there. */
import { html, nothing, render } from 'lit-html';
import type { TemplateResult } from 'lit-html';
import { escaped } from 'tabtune';
import type { CheckpointInfo, ExportChoice, Trainer } from 'tabtune';

import austen from '../assets/pride-and-prejudice.txt?raw';
import { askForFiles } from '../ask.js';
import { chatTurns, stopsOf } from '../chat-turns.js';
import { byId, download } from '../dom.js';
import { optionsOf, write } from '../exporting.js';
import { bytes } from '../format.js';
import { modelfile } from '../modelfile.js';
import { exportName, stemOf } from '../names.js';
import { pickFile, pickFolder } from '../pick.js';
import { sampling } from '../settings.js';
import { faultOf, progressOf } from '../words.js';
import { choiceFacts, choiceName, modelCard } from './export-as.js';
import { namedOf, PLACES, WLLAMA_BYTES } from './places.js';
import type { Place, Shown, Taken } from './places.js';
import { receiptOf } from './receipt.js';
import { cardFields, typeField } from './take-fields.js';
import { itemOf } from './take-item.js';
import type { Acts, To, Work } from './take-item.js';

export interface Around {
  say: (words: string) => void;
  /** Opens the dialog with all formats. */
  allFormats: () => void;
  /** Downloads the checkpoint of the run as it is; returns the name of the file. */
  checkpoint: () => Promise<string>;
  /** Returns the newest checkpoint of a run. */
  newest: (run: string) => Promise<CheckpointInfo | undefined>;
}

/** Number of parameters above which a file with 8 bits per weight is too large for many places. */
const LARGE = 2e9;
/** File of the text that is embedded in this page. */
const AUSTEN = 'pride-and-prejudice.txt';

export class TakeList {
  #shown: Shown | undefined;
  #round = 0;
  /** Type of the matrices in GGUF files. */
  #type = '';
  #system = '';
  #work: Work | undefined;
  #writing: AbortController | undefined;
  #turns: { trainer: Trainer; found: ReturnType<typeof chatTurns> } | undefined;

  constructor(private readonly around: Around) {
    byId('export-as', HTMLDialogElement).addEventListener('close', () => this.#render());
  }

  async show(taken: Taken | undefined): Promise<void> {
    const round = (this.#round += 1);
    if (!taken) return;
    const { trainer, lost } = taken;
    const isSame = this.#shown?.trainer === trainer;
    const [details, info] = lost ? [] : await Promise.all([trainer.details(), trainer.info()]);
    const newest = await this.#newest(trainer);
    if (round !== this.#round) return;
    this.#shown = { ...taken, stem: stemOf(taken.label), details, info, newest };
    if (!isSame) {
      this.#work = undefined;
      const types = this.#types.map(({ type }) => type ?? '');
      const wanted =
        (info?.model.parameters ?? 0) > LARGE ? ['q4_k_m', 'q8_0'] : ['q8_0', 'as-base'];
      this.#type = wanted.find((type) => types.includes(type)) ?? types[0] ?? '';
    }
    this.#render();
  }

  /** Returns the newest checkpoint of a run; the list of saved runs reports why none can be read. */
  #newest({ runId }: Trainer): Promise<CheckpointInfo | undefined> {
    return this.around.newest(runId).catch(() => undefined);
  }

  get #exports(): readonly ExportChoice[] {
    return this.#shown?.details?.exports ?? [];
  }
  /** The GGUF files that are possible. */
  get #types(): ExportChoice[] {
    return this.#exports.filter(({ format, ok }) => format === 'gguf' && ok);
  }

  /** Returns the export of a place: the chosen type where there are several, else a possible one, else one with its reason. */
  #choiceOf({ format }: Place): ExportChoice | undefined {
    const all = this.#exports.filter((choice) => choice.format === format);
    const possible = all.filter(({ ok }) => ok);
    return possible.find(({ type }) => type === this.#type) ?? possible[0] ?? all[0];
  }

  /** Returns why a place cannot be reached. */
  #reason(place: Place, choice: ExportChoice | undefined): string | undefined {
    if (place.format === undefined) return undefined;
    if (this.#shown?.lost)
      return 'The GPU of this run is lost. Resume the run, then the model can be taken away.';
    if (choice) return choice.ok ? undefined : choiceFacts(choice);
    return place.ofAdapter
      ? 'This run trains the weights themselves: there is no adapter.'
      : 'This run has no such form.';
  }

  /** True if the files that the model came from have to be chosen again; those of an adapter are at hand. */
  #needsBase(choice: ExportChoice | undefined): boolean {
    return choice?.needs === 'base' && !this.#shown?.info?.adapter;
  }

  #facts(place: Place, choice: ExportChoice | undefined): string {
    const { newest } = this.#shown ?? {};
    if (place.format !== undefined) {
      if (!choice) return '';
      const size = choice.bytes ?? 0;
      return [
        choiceName(choice),
        choiceFacts(this.#needsBase(choice) ? choice : { ...choice, needs: undefined }),
        choice.ok && choice.bytes === undefined ? 'its size is known once it is written' : '',
        place.id === 'wllama' && size > WLLAMA_BYTES ? 'wllama loads at most 2 GB' : '',
      ]
        .filter(Boolean)
        .join(' · ');
    }
    if (!newest) return 'It is saved when it is downloaded.';
    const { needsBase, hasData } = newest;
    const base = needsBase === false ? [] : needsBase.map(({ name }) => escaped(name));
    return [
      `${bytes(newest.bytes)} in this browser`,
      hasData ? 'with the data' : 'the data have to be chosen again',
      base.length > 0 ? `needs ${base.join(', ')}` : '',
    ]
      .filter(Boolean)
      .join(' · ');
  }

  #say(id: string, words: string, more: Partial<Work> = {}): void {
    this.#work = { id, words, ...more };
    this.around.say(words);
    this.#render();
  }

  /** Performs work for a place, and shows how far it is and why it fails. */
  async #for(id: string, work: (signal: AbortSignal) => Promise<string>): Promise<void> {
    if (this.#writing) return;
    const controller = new AbortController();
    this.#writing = controller;
    this.#say(id, 'Writing …');
    try {
      const words = await work(controller.signal);
      this.#writing = undefined;
      this.#say(id, words, this.#work?.receipt ? { receipt: this.#work.receipt } : {});
      if (words !== '') this.#open(id);
    } catch (thrown) {
      this.#writing = undefined;
      if (controller.signal.aborted)
        this.#say(id, 'This was cancelled: what was written is not complete.');
      else this.#say(id, faultOf(thrown), { fault: true });
    }
  }

  /** Opens what is typed at a place, which is needed next. */
  #open(id: string): void {
    const steps = byId(`take-${id}`, HTMLLIElement).querySelector('details');
    if (steps) steps.open = true;
  }

  #take(place: Place, to: To): Promise<void> {
    return this.#for(place.id, async (signal) => {
      if (!this.#shown) return '';
      const { trainer, stem } = this.#shown;
      const choice = this.#choiceOf(place);
      if (place.format === undefined) {
        const file = await this.around.checkpoint();
        this.#shown = { ...this.#shown, newest: await this.#newest(trainer) };
        return `Downloaded: ${file}.`;
      }
      if (!choice) return '';
      const name = exportName(stem, place.format);
      // The browser asks within the click.
      const folder = to === 'folder' ? await pickFolder() : undefined;
      const target = to === 'file' ? await pickFile(name) : (folder ?? name);
      if (target === undefined || (to === 'folder' && !folder)) return '';
      const base = this.#needsBase(choice)
        ? await askForFiles(
            'Which file?',
            'All that was not trained comes from the GGUF file that the model came from. Choose it again.',
          )
        : [];
      if (!base) return '';
      const receipt = await write(trainer, target, {
        ...optionsOf(choice, stem),
        ...(base.length > 0 ? { base } : {}),
        card: modelCard(),
        signal,
        onProgress: (progress) => this.#say(place.id, progressOf(progress)),
      });
      if (folder && place.id === 'ollama') await this.#intoFolder(folder);
      this.#work = { id: place.id, words: '', receipt: receiptOf(receipt) };
      return `${to === 'download' ? 'Downloaded' : 'Written'}: ${name}.`;
    });
  }

  async #modelfile(): Promise<string> {
    const { trainer, info, stem = 'model' } = this.#shown ?? {};
    if (!trainer) return '';
    const { eos = [], hasChatTemplate: chats = false } = info?.model.tokenizer ?? {};
    if (chats && this.#turns?.trainer !== trainer)
      this.#turns = { trainer, found: chatTurns(trainer) };
    const turns = chats ? await this.#turns?.found : undefined;
    const ends = await Promise.all(eos.map((id) => trainer.detokenize([id])));
    return modelfile({
      file: exportName(stem, 'gguf'),
      temperature: sampling().temperature,
      system: this.#system.trim(),
      stops: stopsOf(turns, ends),
      chats,
      turns,
    });
  }

  async #intoFolder(folder: FileSystemDirectoryHandle): Promise<void> {
    const file = await folder.getFileHandle('Modelfile', { create: true });
    const stream = await file.createWritable();
    await stream.write(await this.#modelfile());
    await stream.close();
  }

  #downloadModelfile(): Promise<void> {
    return this.#for('ollama', async () => {
      // As text it would be called Modelfile.txt, which Ollama does not look for.
      const type = 'application/octet-stream';
      download('Modelfile', new Blob([await this.#modelfile()], { type }));
      return 'Downloaded: Modelfile.';
    });
  }

  async #copy(text: string, id: string): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
      const { receipt } = this.#work?.id === id ? this.#work : {};
      this.#say(id, 'Copied.', receipt ? { receipt } : {});
    } catch (thrown) {
      this.#say(id, faultOf(thrown), { fault: true });
    }
  }

  readonly #choose = (type: string): void => {
    this.#type = type;
    this.#render();
  };
  readonly #acts: Acts = {
    take: (place, to) => void this.#take(place, to),
    cancel: () => this.#writing?.abort(),
    copy: (text, { id }) => void this.#copy(text, id),
    modelfile: () => void this.#downloadModelfile(),
    system: (text) => (this.#system = text),
    text: () => download(AUSTEN, new Blob([austen], { type: 'text/plain' })),
  };

  #item(place: Place, shown: Shown): TemplateResult {
    const choice = this.#choiceOf(place);
    return itemOf(
      {
        place,
        facts: this.#facts(place, choice),
        reason: this.#reason(place, choice),
        named: namedOf(shown),
        busy: this.#writing !== undefined,
        work: this.#work,
        system: this.#system,
        hasText: place.id === 'terminal' && shown.newest?.dataName === AUSTEN,
      },
      this.#acts,
    );
  }

  #render(): void {
    const shown = this.#shown;
    if (!shown) return;
    const clicks = (id: string) => () => byId(id, HTMLButtonElement).click();
    const all = html`<button type="button" id="export" @click=${this.around.allFormats}>
      All formats
    </button>`;
    render(
      html`<div class="form">
          ${typeField(this.#types, this.#type, this.#choose)} ${cardFields()}
        </div>
        <ul class="places">
          ${PLACES.map((place) => this.#item(place, shown))}
        </ul>
        <div class="acts">
          ${shown.lost ? nothing : all}
          <button type="button" @click=${clicks('log')}>All steps as CSV</button>
          <button type="button" @click=${clicks('log-json')}>All, with samples, as JSON</button>
        </div>`,
      byId('take-list', HTMLElement),
    );
  }
}
