/** Addresses as inputs: those of files, and names of repositories of the Hugging Face Hub in all forms in which people write them. */
import { boolean, refuseUnknown, string } from './checks.js';
import { ownFields } from './given.js';
import { lastSegment, ofUrl } from './request-inputs.js';
import { brandOf } from '../protocol/brand.js';
import { badOption, messageOf } from '../protocol/errors.js';
import type { SourceSpec } from '../protocol/protocol.js';
import type { Base } from '../protocol/reports.js';

/** Options of files that are named: where the hub is, and what is taken and kept. */
export interface HubOptions {
  /** Address of the hub, for example of a mirror. Default: 'https://huggingface.co'. */
  hub?: string | URL | undefined;
  /** Access token for private and gated repositories, or a function that returns it. It is sent to the hub alone. */
  token?: string | (() => string | Promise<string>) | undefined;
  /** Type of the GGUF file to take, for example 'Q8_0'. Default: the first of Q4_K_M and Q8_0 that there is. */
  quant?: string | undefined;
  /** Keeps what is downloaded in the origin's private files, so that it is downloaded once. Default: true. */
  keepDownloads?: boolean | undefined;
}
/** @internal Names of these options. */
export const HUB_OPTIONS = { hub: 1, token: 1, quant: 1, keepDownloads: 1 } satisfies Record<
  keyof HubOptions,
  1
>;

/** A file or a repository by its address, such as 'https://example.org/model.gguf' or 'hf:owner/name'. */
export interface AddressInput extends HubOptions {
  /** The address; a relative one is resolved as a link of the page. */
  url: string | URL;
  /** SHA-256 of the file, which is compared before its weights are used. A file that is kept is not requested again. */
  sha256?: string | undefined;
}

/** A text that is an address also where other texts are data; a relative one begins with `./`, `../` or `/`. */
export type Address =
  | `hf:${string}`
  | `http://${string}`
  | `https://${string}`
  | `/${string}`
  | `./${string}`
  | `../${string}`;

const HUB = 'https://huggingface.co';
/** Hosts whose addresses are names, also if another hub is given. */
const HOSTS = ['huggingface.co', 'www.huggingface.co', 'hf.co'];
const REVISION = 'refs/(?:pr|convert)/[^/]+|[^/]+';
const NAME = new RegExp(`^(datasets/)?([^/@]+(?:/[^/@]+)?)(?:@(${REVISION}))?(?:/(.+))?$`);
/** Path of a page of the hub: a repository, or a file or folder in it. */
const PAGE = new RegExp(
  `^(datasets/)?([^/]+/[^/]+)(?:/(?:tree|blob|resolve|raw)/(${REVISION})(?:/(.+))?)?$`,
);
/** First parts of the paths of other pages. */
const OTHERS = /^(api|spaces|docs|blog|models|collections|organizations|settings|papers)(\/|$)/;

interface Named {
  dataset: boolean;
  repo: string;
  revision: string;
  path: string;
}

/** @internal Returns whether a text is an address where it may also be data: it begins like one, and has no white space. */
export const isAddress = (text: string): text is Address =>
  /^(https?:\/\/|hf:|\.{0,2}\/)\S*$/i.test(text);

/** @internal Returns whether an input is an object with an address. */
export const isAddressInput = (input: object): input is AddressInput =>
  brandOf(input) === 'Object' && Object.hasOwn(input, 'url');

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

const named = (match: RegExpExecArray | null): Named | undefined => {
  if (match === null) return undefined;
  const [, dataset, repo = '', revision = 'main', path = ''] = match;
  return {
    dataset: dataset !== undefined,
    repo: decoded(repo),
    revision: decoded(revision),
    path: decoded(path).replace(/\/$/, ''),
  };
};

/** Returns the repository that an address names, if it names one. */
function nameIn(text: string, hub: string): Named | undefined {
  const name = /^hf:(?:\/\/)?(.*)$/i.exec(text)?.[1];
  if (name !== undefined) return named(NAME.exec(name));
  const { origin, host, pathname } = new URL(text);
  const base = new URL(hub);
  const isOwn = origin === base.origin && pathname.startsWith(base.pathname);
  if (!isOwn && !HOSTS.includes(host)) return undefined;
  const path = pathname.slice(isOwn ? base.pathname.length : 1).replace(/^\/|\/$/g, '');
  return OTHERS.test(path) ? undefined : named(PAGE.exec(path));
}

async function tokenOf({ token }: HubOptions, path: string): Promise<string | undefined> {
  if (token === undefined) return undefined;
  let given: unknown = token;
  try {
    if (typeof token === 'function') given = await token();
  } catch (thrown) {
    throw badOption(path, 'a token', `an error: ${messageOf(thrown)}`);
  }
  // The value may be secret, so that no message shows it.
  if (typeof given !== 'string' || !/^[\x21-\x7e]+$/.test(given))
    throw badOption(
      path,
      'a token of visible characters, or a function that returns one',
      typeof given,
    );
  return given;
}

/** Returns the address of a hub without a slash at its end. */
function hubOf(hub: HubOptions['hub'], path: string): string {
  const text = String(hub ?? HUB);
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) throw badOption(path, 'an address', hub);
  return text.replace(/[/?#]*$/, '');
}

/** @internal Checks options of named files, which stand at `path` if they are those of one input. */
export function hubOptions(given: HubOptions, path = ''): HubOptions {
  const { hub, token, quant, keepDownloads } = given;
  if (hub !== undefined) hubOf(hub, `${path}hub`);
  if (token !== undefined && typeof token !== 'function') string(token, `${path}token`);
  if (quant !== undefined) string(quant, `${path}quant`);
  if (keepDownloads !== undefined) boolean(keepDownloads, `${path}keepDownloads`);
  return { hub, token, quant, keepDownloads };
}

/** Returns the options that are given. */
const given = (options: HubOptions): HubOptions =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));

const KEYS = ['url', 'sha256', 'hub', 'token', 'quant', 'keepDownloads'];

/** @internal Describes an address; a relative one is resolved as the page's own links are. */
export async function addressed(
  input: string | URL | AddressInput,
  path: string,
  options: HubOptions = {},
): Promise<SourceSpec> {
  const own: AddressInput = ownFields(
    typeof input === 'object' && isAddressInput(input) ? input : { url: input },
  );
  refuseUnknown(own, KEYS, [], `${path}.`);
  if (!['String', 'URL'].includes(brandOf(own.url)))
    throw badOption(`${path}.url`, 'a string or a URL', own.url);
  const all: HubOptions = ownFields({ ...options, ...given(hubOptions(own, `${path}.`)) });
  const text = String(own.url);
  const isName = /^hf:/i.test(text);
  const base = globalThis.document?.baseURI ?? globalThis.location?.href;
  if (!isName && !URL.canParse(text, base)) throw badOption(path, 'an address', text);
  const url = isName ? text : new URL(text, base).href;
  const hub = hubOf(all.hub, 'hub');
  const name = nameIn(url, hub);
  const keep = all.keepDownloads;
  const { sha256 } = own;
  if (name) {
    if (sha256 !== undefined)
      throw badOption(`${path}.sha256`, 'none: the hub states the sums of its files', sha256);
    return {
      kind: 'hub',
      name: name.path === '' ? name.repo : lastSegment(`file:///${encodeURI(name.path)}`),
      hub,
      ...name,
      quant: all.quant,
      token: await tokenOf(all, 'token'),
      keep,
    };
  }
  if (isName)
    throw badOption(path, "'hf:owner/name', 'hf:owner/name@revision' or a file in it", text);
  if (sha256 !== undefined && !/^[0-9a-f]{64}$/i.test(sha256))
    throw badOption(`${path}.sha256`, 'a SHA-256 of 64 hexadecimal digits', sha256);
  const spec = ofUrl(url);
  return sha256 === undefined && keep === undefined
    ? spec
    : { ...spec, sum: sha256?.toLowerCase(), keep };
}

/** @internal Pins the revisions of sources to the commit from which a model was opened, so that it is opened from the same one again. */
export function pin(sources: readonly SourceSpec[], base: Base | undefined): void {
  const { hub } = base ?? {};
  for (const spec of sources)
    if (hub && spec.kind === 'hub' && spec.repo === hub.repo && spec.revision === hub.revision)
      spec.commit = hub.commit;
}
