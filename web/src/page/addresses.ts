/** Addresses of the assets, as the caller gives them and as browsers with trusted types take them. */
import { brandOf } from '../protocol/brand.js';
import { badOption, fault } from '../protocol/errors.js';

/** A `TrustedScriptURL`, which TypeScript's library does not know. */
export interface TrustedAddress {
  toString(): string;
  toJSON(): string;
}
/** An address that was parsed; a trusted one is passed on as it was given. */
export interface Address {
  href: string;
  given: string | URL | TrustedAddress;
}

/** @internal The address of an asset; a relative one is meant from the page. */
export function addressOf(given: string | URL | TrustedAddress, path: string): Address {
  const kinds = ['String', 'URL', 'TrustedScriptURL'];
  if (!kinds.includes(brandOf(given))) throw badOption(path, 'a string, a URL or a TrustedScriptURL', given);
  try {
    return { href: new URL(String(given), globalThis.location?.href).href, given };
  } catch {
    throw badOption(path, 'an address', String(given));
  }
}

interface Policy {
  createScriptURL(address: string): unknown;
}
interface Policies {
  createPolicy(name: string, rules: { createScriptURL: (address: string) => string }): Policy;
}
/** Our policy; false where the page allows none of our name. */
let policy: Policy | false | undefined;

/** @internal A script's address as this browser takes it: by the policy `tabtune`, where there are trusted types. */
export function trusted({ href, given }: Address): string {
  if (brandOf(given) === 'TrustedScriptURL') return given as string;
  const types = Reflect.get(globalThis, 'trustedTypes') as Policies | undefined;
  if (types === undefined) return href;
  try {
    // A page that demands no trusted types may still allow no policy.
    policy ??= types.createPolicy('tabtune', { createScriptURL: (address) => address });
  } catch {
    policy = false;
  }
  return policy ? (policy.createScriptURL(href) as string) : href;
}

/** @internal Why no worker could be made of a script. */
export function refusedWorker(thrown: unknown): Error {
  if (thrown instanceof TypeError && /trusted/i.test(thrown.message)) {
    return fault('worker.blocked', "this page demands trusted types and allows no policy called tabtune: name it in `trusted-types` of its Content-Security-Policy, or give workerUrl as a TrustedScriptURL", {}, thrown);
  }
  return fault('worker.failed', `the training worker could not be started: ${thrown instanceof Error ? thrown.message : String(thrown)}`, {}, thrown);
}
