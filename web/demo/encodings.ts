/** Old encodings of texts: which of them a text is likely in, and its text in UTF-8. Loaded when a text in one is chosen. */

/** Finds letters with accents, which are single ones among those of ASCII: other scripts, decoded wrongly, become long runs of them. */
const alone = (letters: string): RegExp =>
  new RegExp(`(?<![^\\0-\\x7f]{4})[${letters}](?![^\\0-\\x7f]{4})`, 'g');

/** Names for `TextDecoder`, and for people; the characters that such texts have most; and the usual share of those among all that are not ASCII. */
export const ENCODINGS: readonly (readonly [string, string, RegExp, number])[] = [
  ['utf-8', 'UTF-8, except for a few places', /[^\0-\x7f\ufffd]/g, 0.5],
  [
    'windows-1252',
    'Western European (Windows-1252, Latin-1)',
    alone('éèàùçêâîôûëïüöäßñáíóúãõåæøœÉÄÖÜ“”‘’–—…«»¿¡'),
    0.9,
  ],
  ['windows-1251', 'Cyrillic (Windows-1251)', /[оеаинтсрвлкм]/g, 0.72],
  ['koi8-r', 'Cyrillic (KOI8-R)', /[оеаинтсрвлкм]/g, 0.72],
  ['ibm866', 'Cyrillic (DOS, code page 866)', /[оеаинтсрвлкм]/g, 0.72],
  ['iso-8859-5', 'Cyrillic (ISO 8859-5)', /[оеаинтсрвлкм]/g, 0.72],
  ['windows-1253', 'Greek (Windows-1253)', /[αοιετσνηυρςκάίόέή]/g, 0.8],
  [
    'windows-1250',
    'Central European (Windows-1250)',
    alone('ąćęłńóśźżáčďéěíňřšťúůýžőűöüăîşţđÁČŁŚŠŽ„”–'),
    0.9,
  ],
  ['windows-1254', 'Turkish (Windows-1254)', alone('ışğçöüİŞĞÇÖÜâ'), 0.9],
  ['windows-1257', 'Baltic (Windows-1257)', alone('ąčęėįšųūžāēģīķļņõäöüŠŽ„“'), 0.9],
  ['windows-1255', 'Hebrew (Windows-1255)', /[יוהלאתרבשמנדםכ]/g, 0.75],
  ['windows-1256', 'Arabic (Windows-1256)', /[اليمنوترهبدسع]/g, 0.75],
  ['windows-874', 'Thai (Windows-874)', /[านรอกเงมยลวดท่้ี]/g, 0.7],
  ['shift_jis', 'Japanese (Shift_JIS)', /[\u3041-\u30fe、。]/g, 0.5],
  ['euc-jp', 'Japanese (EUC-JP)', /[\u3041-\u30fe、。]/g, 0.5],
  ['euc-kr', 'Korean (EUC-KR)', /[\uac00-\ud7a3]/g, 0.95],
  [
    'gb18030',
    'Chinese, simplified (GB 18030)',
    /[的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之，。]/g,
    0.3,
  ],
  [
    'big5',
    'Chinese, traditional (Big5)',
    /[的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之，。]/g,
    0.3,
  ],
  ['utf-16le', 'UTF-16, little-endian', /[\0]/g, 1],
  ['utf-16be', 'UTF-16, big-endian', /[\0]/g, 1],
];

/** Characters that no text has where it is decoded as it was written: control characters, and halves of kana, as which Latin letters appear. */
const WRONG = /[\0-\x08\x0e-\x1f\x80-\x9f\uff61-\uff9f\ufffd\ue000-\uf8ff]/g;
const countOf = (text: string, kind: RegExp): number => text.match(kind)?.length ?? 0;

/** Returns the text of bytes that may end within a character. */
export const decoded = (bytes: Uint8Array, encoding: string): string =>
  new TextDecoder(encoding).decode(bytes, { stream: true });

/** Returns the encoding whose usual letters occur most. */
export function likelyEncoding(bytes: Uint8Array): string {
  const zeros = (odd: number): number =>
    bytes.filter((byte, at) => byte === 0 && at % 2 === odd).length;
  if (zeros(1) > bytes.length / 5) return 'utf-16le';
  if (zeros(0) > bytes.length / 5) return 'utf-16be';
  const scores = ENCODINGS.map(([encoding, , usual, share]) => {
    const text = decoded(bytes, encoding);
    const foreign = Math.max(1, countOf(text, /[^\0-\x7f]/g));
    const score = Math.min(1, countOf(text, usual) / foreign / share);
    return { encoding, score: score - countOf(text, WRONG) / foreign };
  });
  return scores.reduce((best, each) => (each.score > best.score ? each : best)).encoding;
}

/** Returns the first line with a letter that is not ASCII, from which one sees best how it is decoded. */
export function telling(text: string, length = 160): string {
  const lines = text.split(/[\r\n]+/).filter((line) => line.trim() !== '');
  const line = lines.find((each) => /[^\0-\x7f]/.test(each)) ?? lines[0] ?? '';
  const at = Math.max(0, line.search(/[^\0-\x7f]/) - length / 2);
  return Array.from(line.slice(at)).slice(0, length).join('');
}

const isMarked = async (file: File): Promise<boolean> => {
  const [first, second] = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  return (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
};

/** Returns whether a file is read as it is: as UTF-8, or as UTF-16 with its mark. */
async function isRead(file: File): Promise<boolean> {
  if (await isMarked(file)) return true;
  const decoder = new TextDecoderStream('utf-8', { fatal: true });
  return file
    .stream()
    .pipeThrough(decoder)
    .pipeTo(new WritableStream())
    .then(
      () => true,
      () => false,
    );
}

/** Returns the files that are read as they are, and the others decoded from their encoding; and the number of characters that it does not have. */
export async function inUtf8(
  files: readonly File[],
  encoding: string,
): Promise<{ files: File[]; lost: number }> {
  let lost = 0;
  const counting = (): TransformStream<string, string> =>
    new TransformStream({
      transform: (text, out) => {
        lost += countOf(text, /\ufffd/g);
        out.enqueue(text);
      },
    });
  const read = files.map(async (file) => {
    if (await isRead(file)) return file;
    const text = file
      .stream()
      .pipeThrough(new TextDecoderStream(encoding))
      .pipeThrough(counting())
      .pipeThrough(new TextEncoderStream());
    return new File([await new Response(text).blob()], file.name, { type: 'text/plain' });
  });
  return { files: await Promise.all(read), lost };
}
