/** Names of models on the Hugging Face Hub, in the forms in which people type and paste them. */
import type { Address } from 'tabtune';

/** Hosts of pages of the hub; the package takes their addresses as names. */
const HOSTS = ['huggingface.co', 'www.huggingface.co', 'hf.co'];
const FORMS =
  'owner/name, owner/name@revision, owner/name/file.gguf, or an address of the Hugging Face Hub';

/** Returns the name or address to open; throws an error that says which forms there are. */
export function hubNameOf(typed: string): Address {
  const text = typed.trim().replace(/^<(.*)>$/, '$1');
  if (text === '') throw new Error(`Name a model first: ${FORMS}.`);
  if (/^hf:/i.test(text)) return text as Address;
  // An address without its scheme, as some browsers copy it.
  const address = HOSTS.some((host) => text.toLowerCase().startsWith(`${host}/`))
    ? `https://${text}`
    : text;
  if (!/^[a-z][a-z0-9+.-]*:/i.test(address)) {
    if (/^[^\s/]\S*$/.test(address)) return `hf:${address}`;
    throw new Error(`“${text}” is no name of a model: expected ${FORMS}.`);
  }
  if (!/^https?:/i.test(address) || !HOSTS.includes(hostOf(address)))
    throw new Error(
      'This page may contact the Hugging Face Hub only. Download the files from that address, and choose them below.',
    );
  return address as Address;
}

const hostOf = (address: string): string =>
  URL.canParse(address) ? new URL(address).host : 'no host';

/** Returns the short form of a name, for headings: the model's name without its owner, or the name of its file. */
export function shortNameOf(name: string): string {
  const path = name
    .replace(/^(https?:\/\/[^/]+\/|hf:(\/\/)?)/i, '')
    .replace(/[?#].*$/, '')
    .replace(/\/$/, '');
  const [, repository = '', file] =
    /^[^/]+\/([^/@]+)(?:@(?:refs\/[^/]+\/)?[^/]+)?(?:\/(?:(?:blob|resolve|raw|tree)\/[^/]+)?(.*))?$/.exec(
      path,
    ) ?? [];
  const last = (file ?? '').split('/').at(-1) ?? '';
  return last || repository || path;
}
