/**
 * How the chosen data would be learned, shown before anything is trained: forms, counts, lengths, warnings, and the first examples token by token.
 */
import { escaped, inspectData, TabtuneError } from 'tabtune';
import type {
  DataInput,
  DataInspection,
  DataPreview,
  DataReport,
  Model,
  TrainOptions,
} from 'tabtune';

import { byId, make } from '../dom.js';
import { bytes, counted, grouped, percent } from '../format.js';
import { promptOf, suggestPrompt } from '../prompt.js';
import { workerUrl } from '../worker.js';
import { begun, showFault } from '../words.js';

/** Number of bytes of a large file that are inspected. */
export const LOOKED_AT = 2 ** 20;
export const isLarge = (data: DataInput): data is File =>
  data instanceof File && data.size > LOOKED_AT;
/** Number of examples that are shown, and of tokens shown of each. */
const SHOWN = 3;
const SHOWN_TOKENS = 400;

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

  /** Columns that were chosen for rows whose keys have other names. */
  get columns(): TrainOptions['columns'] {
    const [prompt, completion] = [this.#prompt.value, this.#completion.value];
    if (this.#columns.hidden || completion === '') return undefined;
    return prompt === '' ? { text: completion } : { prompt, completion };
  }

  /**
   * Shows what a run with these options would learn, suggests a prompt of it, and returns the inspection. If the sequence length follows the data,
   * rows propose one, and a text of an opened model, whose options have none.
   */
  async show(
    data: DataInput,
    model: Model,
    options: TrainOptions,
    lengthFollows: boolean,
  ): Promise<DataInspection> {
    if (data !== this.#data) this.#columns.hidden = true;
    this.#data = data;
    const large = isLarge(data);
    const part = large ? { bytes: LOOKED_AT } : {};
    const { seqLen, ...free } = options;
    const inspect = (length: { seqLen?: number | undefined }): Promise<DataInspection> =>
      inspectData(data, { ...free, ...length, columns: this.columns, model, show: SHOWN, ...part });
    let found = await inspect(lengthFollows && data !== this.#stream ? {} : { seqLen });
    const isStream = found.report.lengths === null;
    if (isStream && seqLen !== undefined && data !== this.#stream)
      found = await inspect({ seqLen });
    this.#stream = isStream ? data : undefined;
    this.#report(found, large ? data : undefined);
    suggestPrompt(promptOf(found.preview, found.report.end));
    this.#fault.hidden = true;
    this.#section.hidden = false;
    return found;
  }

  /** Forgets why data cannot be learned; without data, their report as well. */
  forget(report: boolean): void {
    this.#fault.hidden = true;
    if (report) this.#section.hidden = true;
  }

  /** Shows why data cannot be learned, if that is the error, and offers to name the columns if that helps. Returns true if the error was shown. */
  async refuse(data: DataInput, thrown: unknown): Promise<boolean> {
    if (!(thrown instanceof TabtuneError) || thrown.detail.code?.startsWith('data.') !== true)
      return false;
    if (data !== this.#data) this.#columns.hidden = true;
    this.#data = data;
    if (/^data\.(shape|columns)$/.test(thrown.detail.code))
      await this.#offerColumns(data, data instanceof File ? { bytes: LOOKED_AT } : {});
    showFault(this.#fault, thrown);
    byId('lesson-report', HTMLElement).hidden = true;
    this.#section.hidden = false;
    return true;
  }

  /** Offers to choose the column of each kind of text. */
  async #offerColumns(data: DataInput, part: { bytes?: number }): Promise<void> {
    const [file] = await inspectData(data, { ...part, workerUrl });
    const columns = file?.columns ?? [];
    if (columns.length === 0) return;
    for (const [select, none] of [
      [this.#prompt, 'Nothing: the text is learned whole'],
      [this.#completion, 'Choose a column'],
    ] as const) {
      const kept = select.value;
      select.replaceChildren(
        new Option(none, ''),
        ...columns.map((column) => new Option(column, column)),
      );
      if (columns.includes(kept)) select.value = kept;
    }
    this.#columns.hidden = false;
  }

  #report({ report, preview }: DataInspection, part: File | undefined): void {
    const { files, shapes, examples, tokens, seqLen, windows, packedFraction, stepsPerEpoch } =
      report;
    const descriptions = files
      .map(
        ({ name, form, rows }) =>
          `${escaped(name)}: ${form}${rows === null ? '' : `, ${counted(rows, 'row')}`}`,
      )
      .join('; ');
    const kinds = Object.entries(shapes)
      .map(([kind, count]) => `${grouped(count)} ${kind}`)
      .join(', ');
    const head = part ? `Of the first ${bytes(LOOKED_AT)} of ${bytes(part.size)}: ` : '';
    const lines = [
      `${head}${descriptions}${kinds === '' ? '' : ` (${kinds})`}.`,
      `${examples > 0 ? `${counted(examples, 'example')}, ` : ''}${counted(tokens.total, 'token')}, of which ${grouped(tokens.learned)} are learned (${percent(tokens.learned / Math.max(1, tokens.total))}).`,
      `${counted(windows, 'sequence')} of ${grouped(seqLen)} tokens per epoch, ${percent(packedFraction)} of them filled: ${counted(stepsPerEpoch, 'step')}.`,
    ];
    byId('lesson-facts', HTMLElement).replaceChildren(
      ...lines.map((line) => make('p', line, 'facts')),
    );
    this.#histogram(report);
    const warnings = report.warnings.map(({ message, code, rows, count }) => {
      const item = make('li', begun(escaped(message)));
      const name = (file: number): string =>
        files.length > 1 ? ` of ${escaped(files[file]?.name ?? '')}` : '';
      const at = rows.map((row) => `${placeOf(row, report)}${name(row.file)}`).join(', ');
      const place =
        at === '' ? '' : `${at}${count > rows.length ? `, ${grouped(count)} in all` : ''} · `;
      item.append(' ', make('span', `(${place}${code})`, 'meta'));
      return item;
    });
    byId('lesson-warnings', HTMLUListElement).replaceChildren(...warnings);
    this.#preview = preview;
    this.#files = report;
    this.#examples();
    byId('lesson-report', HTMLElement).hidden = false;
  }

  /** Draws the lengths as bars, with a line at the end of a sequence. */
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
    line.style.setProperty(
      'left',
      `${Math.min(100, (100 * (seqLen + 1)) / (histogram.length * histogramStep))}%`,
    );
    byId('lesson-bars', HTMLElement).replaceChildren(...bars, line);
    const lost =
      cut + skipped > 0 ? `; ${counted(cut, 'example')} cut, ${grouped(skipped)} left out` : '';
    byId('lesson-lengths-said', HTMLElement).textContent =
      `Tokens of an example: ${grouped(min)} to ${grouped(max)}, half up to ${grouped(p50)}, 95 % up to ${grouped(p95)}. The line is a sequence of ${grouped(seqLen)}${lost}.`;
  }

  /** Shows the first examples; learned text is marked by colour, by a line under it, and in words for a screen reader. */
  #examples(): void {
    const boxes = byId('lesson-tokens', HTMLInputElement).checked;
    const items = this.#preview.map(({ row, segments }) => {
      const item = make('li');
      item.append(
        make('p', row && this.#files ? placeOf(row, this.#files) : 'The beginning', 'meta'),
      );
      const text = make('p', '', 'example');
      let left = SHOWN_TOKENS;
      for (const { text: said, tokens, learned } of segments) {
        if (left <= 0) break;
        const element = make(learned ? 'mark' : 'span');
        if (learned) element.append(make('span', 'learned: ', 'unseen'));
        const whole = tokens.length <= left;
        if (boxes)
          element.append(
            ...tokens.slice(0, left).map(({ id, text: word }) => {
              const box = make('span', visible(word), 'token');
              box.title = `id ${id}`;
              return box;
            }),
          );
        else
          element.append(
            visible(
              whole
                ? said
                : tokens
                    .slice(0, left)
                    .map(({ text: word }) => word)
                    .join(''),
            ),
          );
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

/** Returns the position of a row in the form that people can find: JSON may have many rows on one line. */
export function placeOf(
  { file, line, row }: NonNullable<DataPreview[number]['row']>,
  { files }: Pick<DataReport, 'files'>,
): string {
  return files[file]?.form === 'json' ? `Row ${grouped(row)}` : `Line ${grouped(line)}`;
}

/** Returns text with visible line ends and harmless control characters. */
const visible = (text: string): string => text.split('\n').map(escaped).join('⏎\n');
