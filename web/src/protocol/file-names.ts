/** Names that become names of files. */

/** Maximum number of bytes, in UTF-8: file systems allow 255 together with the endings of a name. */
const BYTES = 120;

/** Returns a name without control and bidi characters, cut to 120 bytes of UTF-8. */
export function plainName(name: string): string {
  const plain = name.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, '-');
  return plain.slice(0, new TextEncoder().encodeInto(plain, new Uint8Array(BYTES)).read);
}
