/** What the chosen data are learned as, before anything is trained: forms, counts, lengths, warnings, and the first examples token by token. */
import { escaped, inspectData, TabtuneError } from 'tabtune';
import type { DataInput, DataInspection, DataPreview, DataReport, Model, Refusal, TrainOptions } from 'tabtune';

import { byId, make } from '../dom.js';
import { bytes, grouped } from '../format.js';
import { workerUrl } from '../worker.js';
import { refusalWords } from './inspector.js';

/** Bytes of a large file that are looked at. */
export const LOOKED_AT = 2 ** 20;
export const isLarge = (data: DataInput): data is File => data instanceof File && data.size > LOOKED_AT;
/** Examples that are shown, and tokens of one of them. */
const SHOWN = 3;
const SHOWN_TOKENS = 400;
/** Kinds of faults of rows that are shown, and lines of each. */
const FAULTS = 5;
const PLACES = 6;

const many = (count: number, one: string): string => `${grouped(count)} ${one}${count === 1 ? '' : 's'}`;
const percent = (share: number): string => `${Math.round(100 * share)} %`;

export class DataPanel {
  readonly #section = byId('lesson', HTMLElement);
  readonly #fault = byId('lesson-fault', HTMLElement);
  readonly #columns = byId('lesson-columns', HTMLFieldSetElement);
  readonly #prompt = byId('column-prompt', HTMLSelectElement);
  readonly #completion = byId('column-completion', HTMLSelectElement);
  #preview: DataPreview = [];
  #files: DataReport | undefined;
  #data: DataInput | undefined;
  /** The data, if they were found to be one stream. */
  #stream: DataInput | undefined;

  constructor() {
    byId('lesson-tokens', HTMLInputElement).addEventListener('change', () => this.#examples());
  }

  /** The columns that were chosen for rows whose keys have other names. */
  get columns(): TrainOptions['columns'] {
    const [prompt, completion] = [this.#prompt.value, this.#completion.value];
    if (this.#columns.hidden || completion === '') return undefined;
    return prompt === '' ? { text: completion } : { prompt, completion };
  }

  /**
   * Shows what a run of these options would learn. Where the sequence length follows, it is the one that rows propose, and is given back. A refusal
   * is shown, and rows of other keys can be given names.
   */
  async show(data: DataInput, model: Model, options: TrainOptions & { seqLen: number }, lengthFollows: boolean): Promise<number | undefined> {
    if (data !== this.#data) this.#columns.hidden = true;
    this.#data = data;
    const large = isLarge(data);
    const of = large ? { bytes: LOOKED_AT } : {};
    let proposed: number | undefined;
    try {
      const { seqLen, ...free } = options;
      const inspect = (length: { seqLen?: number }): Promise<DataInspection> => inspectData(data, { ...free, ...length, columns: this.columns, model, show: SHOWN, ...of });
      let inspection = await inspect(lengthFollows && data !== this.#stream ? {} : { seqLen });
      const isStream = inspection.report.lengths === null;
      if (isStream && data !== this.#stream) inspection = await inspect({ seqLen });
      this.#stream = isStream ? data : undefined;
      if (!isStream) proposed = inspection.report.seqLen;
      this.#report(inspection, large ? data : undefined);
      this.#fault.hidden = true;
    } catch (thrown) {
      if (!(await this.refuse(data, thrown))) throw thrown;
    }
    this.#section.hidden = false;
    return proposed;
  }

  /** Shows why data cannot be learned, if that is what was thrown, and offers to name the columns where that helps. */
  async refuse(data: DataInput, thrown: unknown): Promise<boolean> {
    if (!(thrown instanceof TabtuneError) || thrown.detail.code?.startsWith('data.') !== true) return false;
    if (data !== this.#data) this.#columns.hidden = true;
    this.#data = data;
    if (/^data\.(shape|columns)$/.test(thrown.detail.code)) await this.#offerColumns(data, data instanceof File ? { bytes: LOOKED_AT } : {});
    this.#fault.textContent = faultsOf(thrown);
    this.#fault.hidden = false;
    byId('lesson-report', HTMLElement).hidden = true;
    this.#section.hidden = false;
    return true;
  }

  /** Offers to say which column is what. */
  async #offerColumns(data: DataInput, of: { bytes?: number }): Promise<void> {
    const [file] = await inspectData(data, { ...of, workerUrl });
    const columns = file?.columns ?? [];
    if (columns.length === 0) return;
    for (const [select, none] of [[this.#prompt, 'Nothing: the text is learned whole'], [this.#completion, 'Choose a column']] as const) {
      const kept = select.value;
      select.replaceChildren(new Option(none, ''), ...columns.map((column) => new Option(column, column)));
      if (columns.includes(kept)) select.value = kept;
    }
    this.#columns.hidden = false;
  }

  #report({ report, preview }: DataInspection, part: File | undefined): void {
    const { files, shapes, examples, tokens, seqLen, windows, packedFraction, stepsPerEpoch } = report;
    const of = files.map(({ name, form, rows }) => `${escaped(name)}: ${form}${rows === null ? '' : `, ${many(rows, 'row')}`}`).join('; ');
    const kinds = Object.entries(shapes).map(([kind, count]) => `${grouped(count)} ${kind}`).join(', ');
    const head = part ? `Of the first ${bytes(LOOKED_AT)} of ${bytes(part.size)}: ` : '';
    const lines = [
      `${head}${of}${kinds === '' ? '' : ` (${kinds})`}.`,
      `${examples > 0 ? `${many(examples, 'example')}, ` : ''}${many(tokens.total, 'token')}, of which ${grouped(tokens.learned)} are learned (${percent(tokens.learned / Math.max(1, tokens.total))}).`,
      `${many(windows, 'sequence')} of ${grouped(seqLen)} tokens an epoch, ${percent(packedFraction)} of them filled: ${many(stepsPerEpoch, 'step')}.`,
    ];
    byId('lesson-facts', HTMLElement).replaceChildren(...lines.map((line) => make('p', line, 'facts')));
    this.#histogram(report);
    const warnings = report.warnings.map(({ message, code, rows, count }) => {
      const item = make('li', escaped(message));
      const name = (file: number): string => (files.length > 1 ? ` of ${escaped(files[file]?.name ?? '')}` : '');
      const at = rows.map((row) => `${placeOf(row, report)}${name(row.file)}`).join(', ');
      const place = at === '' ? '' : `${at}${count > rows.length ? `, ${grouped(count)} in all` : ''} · `;
      item.append(' ', make('span', `${place}${code}`, 'meta'));
      return item;
    });
    byId('lesson-warnings', HTMLUListElement).replaceChildren(...warnings);
    this.#preview = preview;
    this.#files = report;
    this.#examples();
    byId('lesson-report', HTMLElement).hidden = false;
  }

  /** Bars of the lengths, with a line where a sequence ends. */
  #histogram({ lengths, seqLen, cut, skipped }: DataReport): void {
    const figure = byId('lesson-lengths', HTMLElement);
    figure.hidden = lengths === null || lengths.max === lengths.min;
    if (!lengths) return;
    const { histogram, histogramStep, min, p50, p95, max } = lengths;
    const most = Math.max(1, ...histogram);
    const bars = histogram.map((count) => {
      const bar = make('span');
      bar.style.setProperty('height', `${Math.max(count === 0 ? 0 : 4, (100 * count) / most)}%`);
      return bar;
    });
    const line = make('i');
    line.style.setProperty('left', `${Math.min(100, (100 * (seqLen + 1)) / (histogram.length * histogramStep))}%`);
    byId('lesson-bars', HTMLElement).replaceChildren(...bars, line);
    const lost = cut + skipped > 0 ? `; ${many(cut, 'example')} cut, ${grouped(skipped)} left out` : '';
    byId('lesson-lengths-said', HTMLElement).textContent = `Tokens of an example: ${grouped(min)} to ${grouped(max)}, half up to ${grouped(p50)}, 95 % up to ${grouped(p95)}. The line is a sequence of ${grouped(seqLen)}${lost}.`;
  }

  /** The first examples: what is learned is marked by colour, by a line under it, and in words for a screen reader. */
  #examples(): void {
    const boxes = byId('lesson-tokens', HTMLInputElement).checked;
    const items = this.#preview.map(({ row, segments }) => {
      const item = make('li');
      item.append(make('p', row && this.#files ? placeOf(row, this.#files) : 'The beginning', 'meta'));
      const text = make('p', '', 'example');
      let left = SHOWN_TOKENS;
      for (const { text: said, tokens, learned } of segments) {
        if (left <= 0) break;
        const element = make(learned ? 'mark' : 'span');
        if (learned) element.append(make('span', 'learned: ', 'unseen'));
        const whole = tokens.length <= left;
        if (boxes) element.append(...tokens.slice(0, left).map(({ id, text: word }) => {
          const box = make('span', visible(word), 'token');
          box.title = `id ${id}`;
          return box;
        }));
        else element.append(visible(whole ? said : tokens.slice(0, left).map(({ text: word }) => word).join('')));
        if (learned) element.append(make('span', ' (end of what is learned) ', 'unseen'));
        left -= tokens.length;
        text.append(element);
      }
      if (left < 0) text.append(' …');
      item.append(text);
      return item;
    });
    byId('lesson-examples', HTMLOListElement).replaceChildren(...items);
  }
}

/** How people find a row: JSON may have many on a line. */
function placeOf({ file, line, row }: NonNullable<DataPreview[number]['row']>, { files }: Pick<DataReport, 'files'>): string {
  return files[file]?.form === 'json' ? `Row ${grouped(row)}` : `Line ${grouped(line)}`;
}

/** What was refused: of many rows the lines of each fault, with its words once. */
function faultsOf({ message, detail: { refusals = [] } }: TabtuneError): string {
  if (refusals.length < 2) return message;
  const faults = new Map<string, Refusal[]>();
  for (const refusal of refusals as Refusal[]) {
    const words = refusalWords({ ...refusal, subject: undefined });
    faults.set(words, [...(faults.get(words) ?? []), refusal]);
  }
  const lines = [...faults].slice(0, FAULTS).map(([words, of]) => {
    const places = of.slice(0, PLACES).map(({ subject = '' }) => escaped(subject)).join(', ');
    return `${places}${of.length > PLACES ? ` and ${grouped(of.length - PLACES)} more` : ''}: ${words}`;
  });
  const more = faults.size - FAULTS;
  return [...lines, ...(more > 0 ? [`and ${many(more, 'more fault')}`] : [])].join('\n');
}

/** Text whose line ends can be seen, and whose control characters do nothing. */
const visible = (text: string): string => text.split('\n').map(escaped).join('⏎\n');
