/** Kinds of files that are neither text nor rows, known by their bytes, and advice on each. Loaded when files are first chosen. */

/** Number of bytes that are looked at, at both ends of a file: the names of a zip archive are at its end. */
const LOOKED_AT = 64 << 10;

export interface Kind {
  is: string;
  advice: string;
}

const AS_TEXT = 'save it as plain text (.txt)';
const TEXT_ONLY = 'this page learns from text alone';
const UNPACK = 'unpack it, and choose what is in it';
const ROWS = 'save its rows as CSV, and choose that';
const PICKLE: Kind = {
  is: 'a pickle of Python (PyTorch)',
  advice:
    'a pickle can run a program, so this page never reads one: choose the .safetensors or .gguf files of the model',
};

/** First bytes as Latin-1, the kind, and advice. */
const FIRST: readonly (readonly [RegExp, string, string])[] = [
  [/^%PDF-/, 'a PDF document', 'copy its text into a .txt file, and choose that'],
  [/^\{\\rtf/, 'an RTF document', `${AS_TEXT} in a word processor, and choose that`],
  [/^GGUF/, 'a model (GGUF)', 'choose it under Model'],
  [/^[^]{4}\0{4}\s*\{/, 'a file of weights (safetensors)', 'choose it under Model'],
  [/^\x89PNG/, 'a picture (PNG)', TEXT_ONLY],
  [/^\xff\xd8\xff/, 'a picture (JPEG)', TEXT_ONLY],
  [/^GIF8[79]a/, 'a picture (GIF)', TEXT_ONLY],
  [/^(II\*\0|MM\0\*)/, 'a picture (TIFF)', TEXT_ONLY],
  [/^BM[^]{4}\0{4}/, 'a picture (BMP)', TEXT_ONLY],
  [/^RIFF[^]{4}WEBP/, 'a picture (WebP)', TEXT_ONLY],
  [/^(RIFF[^]{4}WAVE|OggS\0|fLaC\0|ID3[\x02-\x04]\0|\xff[\xfa\xfb])/, 'a recording', TEXT_ONLY],
  [/^\0\0\0[^]ftyp/, 'a picture or a film', TEXT_ONLY],
  [/^(\x7fELF|MZ[^]{2}\0)/, 'a program', TEXT_ONLY],
  [/^(7z\xbc\xaf|Rar!|\x28\xb5\x2f\xfd|\xfd7zXZ\0|BZh[1-9]1AY)/, 'a packed file', UNPACK],
  [/^[^]{257}ustar/, 'a tar archive', UNPACK],
  [/^SQLite format 3\0/, 'a SQLite database', ROWS],
  [/^ARROW1\0/, 'an Arrow file', ROWS],
  [/^\x89HDF/, 'an HDF5 file', 'choose the .safetensors or .gguf files of the model'],
];

/** Words in a zip archive that show its kind. */
const ZIPPED: typeof FIRST = [
  [/word\/document/, 'a Word document', `${AS_TEXT} in Word, and choose that`],
  [/xl\/workbook/, 'an Excel workbook', 'save its rows as CSV in Excel, and choose that'],
  [/ppt\/presentation/, 'a PowerPoint presentation', 'copy its text into a .txt file'],
  [/opendocument\.text/, 'an OpenDocument text', `${AS_TEXT} in LibreOffice, and choose that`],
  [/opendocument\./, 'an OpenDocument file', 'save its text as .txt or its rows as CSV'],
  [
    /application\/epub\+zip/,
    'a book (EPUB)',
    'convert it to plain text (.txt), for example with Calibre, and choose that',
  ],
];

/** Streams of an Office document before 2007, whose names are written in two bytes per letter. */
const OFFICE: typeof FIRST = [
  [/W\0o\0r\0d\0D\0o\0c/, 'a Word document', `${AS_TEXT} in Word, and choose that`],
  [/W\0o\0r\0k\0b\0o\0o\0k/, 'an Excel workbook', 'save its rows as CSV in Excel'],
];
const OFFICE_BEGINS = '\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1';

const kindIn = (bytes: string, kinds: typeof FIRST): Kind | undefined => {
  const [, is = '', advice = ''] = kinds.find(([mark]) => mark.test(bytes)) ?? [];
  return is === '' ? undefined : { is, advice };
};

function zipped(bytes: string): Kind {
  const kind = kindIn(bytes, ZIPPED);
  if (kind) return kind;
  return bytes.includes('data.pkl') ? PICKLE : { is: 'a zip archive', advice: UNPACK };
}

/** Characters that no text has. */
const BINARY = /[\0-\x08\x0e-\x1a]/;
/** True if the letters are pairs of bytes, one of which is zero in most: UTF-16 without a mark. */
const isPaired = (bytes: string): boolean => {
  const zeros = [0, 0];
  for (let at = 0; at < bytes.length; at += 1)
    if (bytes[at] === '\0') zeros[at % 2] = (zeros[at % 2] ?? 0) + 1;
  return Math.max(...zeros) > bytes.length / 5 && Math.min(...zeros) < bytes.length / 50;
};

/** Returns the kind of bytes, written as Latin-1, that are neither a text nor rows in a form that a run reads; `first` are those at the beginning. */
export function kindOfBytes(first: string, last = ''): Kind | undefined {
  if (/^(PAR1|\x1f\x8b)/.test(first)) return undefined;
  const all = first + last;
  const kind = kindIn(first, FIRST);
  if (kind) return kind;
  if (/^PK\x03\x04/.test(first)) return zipped(all);
  if (first.startsWith(OFFICE_BEGINS))
    return (
      kindIn(all, OFFICE) ?? { is: 'a document of Office', advice: `${AS_TEXT}, and choose that` }
    );
  if (/^\x80[\x02-\x05]/.test(first)) return PICKLE;
  const marked = /^(\xff\xfe|\xfe\xff)/.test(first);
  if (BINARY.test(first) && !marked && !isPaired(first))
    return {
      is: 'not a text, by its bytes',
      advice: 'choose a text, or rows as JSON, CSV or Parquet',
    };
  return undefined;
}

const latin1 = async (part: Blob): Promise<string> =>
  Array.from(new Uint8Array(await part.arrayBuffer()), (byte) => String.fromCharCode(byte)).join(
    '',
  );

/** Returns the kind of a file that is neither a text nor rows. Token ids are known by their name alone. */
export async function kindOf(file: File): Promise<Kind | undefined> {
  if (/\.tokens$/i.test(file.name)) return undefined;
  const first = await latin1(file.slice(0, LOOKED_AT));
  const last = await latin1(file.slice(Math.max(LOOKED_AT, file.size - LOOKED_AT)));
  return kindOfBytes(first, last);
}
