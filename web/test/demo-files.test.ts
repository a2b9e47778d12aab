/** Files as people choose and drop them: what is no text, in which old encoding a text is, and where each belongs. */
import { describe, expect, it } from 'vitest';

import { sorted } from '../demo/belongs.js';
import { decoded, likelyEncoding, telling } from '../demo/encodings.js';
import { kindOfBytes } from '../demo/file-kinds.js';

/** Beginnings of texts, and their bytes in each encoding. */
const TEXTS = [
  [
    'windows-1252',
    'Où est p',
    'T/kgZXN0IHBhc3PpZSBsYSBjbOkgZHUgY2jidGVhdSA/IEVsbGUg6XRhaXQgbOAtYmFzLCBwcuhzIGRlIGyS6WdsaXNlLg==',
  ],
  [
    'windows-1251',
    'Все счас',
    'wvHlIPH34PHy6+ji++Ug8eXs/Ogg7+717uboIOTw8+Mg7eAg5PDz4+AsIOrg5uTg/yDt5fH34PHy6+ji4P8g8eXs/P8g7eXx9+Dx8uvo4uAg7+4t8eLu5ezzLg==',
  ],
  [
    'koi8-r',
    'Все смеш',
    '99PFINPNxdvBzM/T2CDXIMTPzcUg78LMz87Ty8nILiD2xc7BINXazsHMwSwg3tTPIM3V1iDC2cwg1yDT19HayS4=',
  ],
  [
    'ibm866',
    'Все смеш',
    'guGlIOGspeigq67h7CCiIKSurKUgjqGrrq3hqqjlLiCGpa2gIOOnraCroCwg5+KuIKzjpiCh66sgoiDhou+nqC4=',
  ],
  [
    'windows-1253',
    'Τα παιδι',
    '1OEg8OHp5OncIPDh3+bv9e0g8/Tn7SDh9eveIPTv9SDz9+/r5d/v9SDq4ekg5yDk4fPq3OvhIPThIOrv6fTc5uXpLg==',
  ],
  [
    'windows-1250',
    'Zażółć g',
    'WmG/87PmIGfqnGy5IGphn/EuIFBjaG655iB3IHTqILPzZJ8gamW/YSBsdWIgb5xtIHNrcnp58SBmaWcu',
  ],
  [
    'windows-1254',
    'Yağız şo',
    'WWHw/Xog/m9m9nJlIOdhYnVjYWsgZ/x2ZW5kaS4gSf79ayBz9m5k/Cwg5/3wbP1rIGF0dP0sIGHwbGFk/S4=',
  ],
  [
    'windows-1255',
    'בראשית ב',
    '4fjg+en6IOH44CDg7OTp7SDg+iDk+e7p7SDl4Pog5OD49SDl5OD49SDk6frkIPrk5SDl4eTl',
  ],
  [
    'windows-1256',
    'كان يا م',
    '38fkIO3HIOPHIN/H5CDd7SDez+3jIMfh0uPH5CDj4d8g2tnt4yDtzcggx+Ha4eMg5sfh38rI',
  ],
  ['windows-874', 'วันหนึ่ง', 'x9G5y7nW6KfB1arSwqS5y7nW6KfgtNS5t9Kn5Lvjubvo0uPLrejgvtfozcvSzdLL0sM='],
  [
    'shift_jis',
    '吾輩は猫である。',
    'jOGUeYLNlEyCxYKggumBQpa8kU+CzYLcgr6Ws4KigUKCx4KxgsWQtoLqgr2CqYLGgvGCxoypk5aCqoLCgqmCyoFC',
  ],
  [
    'euc-jp',
    '吾輩は猫である。',
    'uOPH2qTPx62kx6SipOuho8y+wbCkz6TepMDMtaSkoaOkyaSzpMfAuKTspL+kq6TIpPOkyLirxfakrKTEpKukzKGj',
  ],
  [
    'euc-kr',
    '나 보기가 역겨',
    's6ogurix4rChIL+qsNy/9iCwob3HILanv6G0wiC4u774wMwgsO3AzCC6uLO7ILXluK6/7LiutNku',
  ],
  [
    'gb18030',
    '道可道，非常道。',
    'tcC/ybXAo6y3x7OjtcCho9XiysfSu7j2utyzpLXEucrKwqOsztLDx9Ta1eLA78u1wcu63LbgxOqjrMv7srvWqrXAztLAtMHLoaM=',
  ],
  [
    'big5',
    '道可道，非常道。',
    'uUSlablEoUGrRLFguUShQ7NvrE+kQK3Tq9yq+Kq6rEeoxqFBp9qtzKZis2+4zLuhpEar3KZopn6hQaVMpKOqvrlEp9qo06RGoUM=',
  ],
  [
    'utf-16le',
    'Call me ',
    'QwBhAGwAbAAgAG0AZQAgAEkAcwBoAG0AYQBlAGwALgAgAFMAbwBtAGUAIAB5AGUAYQByAHMAIABhAGcAbwAsACAAbgBlAHYAZQByACAAbQBpAG4AZAAgAGgAbwB3ACAAbABvAG4AZwAuAA==',
  ],
] as const;

describe('old_encodings', () => {
  it.each(TEXTS)('are_found_by_their_letters: %s', (encoding, begins, base64) => {
    const bytes = Uint8Array.from(Buffer.from(base64, 'base64'));
    expect(likelyEncoding(bytes)).toBe(encoding);
    expect(decoded(bytes, encoding)).toMatch(new RegExp(`^${begins}`));
  });
  it('are_not_taken_for_a_text_with_a_damaged_place', () => {
    const bytes = new TextEncoder().encode('Où est passée la clé du château\u00a0? Près de là.');
    bytes[1] = 0xff;
    expect(likelyEncoding(bytes)).toBe('utf-8');
  });
  it('are_shown_by_a_line_that_is_not_ascii', () => {
    expect(telling('first\r\n\r\nécole\nthird')).toBe('école');
    expect(telling('plain')).toBe('plain');
  });
});

describe('kinds', () => {
  it.each([
    ['%PDF-1.7', 'a PDF document'],
    ['{\\rtf1\\ansi', 'an RTF document'],
    ['PK\x03\x04\x14\0[Content_Types].xml word/document.xml', 'a Word document'],
    ['PK\x03\x04\x14\0mimetypeapplication/vnd.oasis.opendocument.text', 'an OpenDocument text'],
    ['PK\x03\x04\x14\0mimetypeapplication/epub+zip', 'a book (EPUB)'],
    ['PK\x03\x04\0\0archive/data.pkl', 'a pickle of Python (PyTorch)'],
    ['PK\x03\x04\0\0notes.txt', 'a zip archive'],
    ['\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0W\0o\0r\0d\0D\0o\0c\0u\0m', 'a Word document'],
    ['\x80\x02}q\0', 'a pickle of Python (PyTorch)'],
    ['\x89PNG\r\n', 'a picture (PNG)'],
    ['GGUF\x03\0\0\0', 'a model (GGUF)'],
    ['\x10\0\0\0\0\0\0\0{"a":{}}', 'a file of weights (safetensors)'],
    ['abc\0\x01\x02def', 'not a text, by its bytes'],
  ])('are_known_by_their_bytes: %j', (bytes, is) => {
    expect(kindOfBytes(bytes)?.is).toBe(is);
  });
  it.each([
    'Call me Ishmael.',
    '{"text": 1}',
    'PAR1\0\0',
    '\x1f\x8b\x08\0',
    '\xff\xfea\0',
    'a\0b\0c\0',
  ])('leave_texts_and_rows: %j', (bytes) => {
    expect(kindOfBytes(bytes)).toBeUndefined();
  });
});

describe('dropped_files', () => {
  const sortedNames = (...names: string[]): Record<string, string[]> => {
    const sorts = sorted(names.map((name) => new File([], name)));
    const found = Object.entries(sorts).map(
      ([kind, files]: [string, File[]]) => [kind, files.map(({ name }) => name)] as const,
    );
    return Object.fromEntries(found.filter(([, all]) => all.length > 0));
  };
  it('go_to_model_data_and_runs', () => {
    expect(
      sortedNames(
        'config.json',
        'model.safetensors',
        'merges.txt',
        'README.md',
        'mine.txt',
        'a.exe',
      ),
    ).toEqual({
      model: ['config.json', 'model.safetensors', 'merges.txt'],
      left: ['README.md'],
      data: ['mine.txt'],
      unknown: ['a.exe'],
    });
    expect(sortedNames('README.md', 'rows.json', 'a.tabtune')).toEqual({
      data: ['README.md', 'rows.json'],
      runs: ['a.tabtune'],
    });
    expect(sortedNames('.state_dict.json', 'model.safetensors')).toEqual({
      runs: ['.state_dict.json', 'model.safetensors'],
    });
  });
});
