/** Addresses of the package's assets, in the forms that callers give and that browsers with Trusted Types accept. */
import { brandOf } from '../protocol/brand.js';
import { badOption, fault, messageOf } from '../protocol/errors.js';

/** A `TrustedScriptURL`, a type that TypeScript's own library does not declare. */
export interface TrustedAddress {
  /** The address. */
  toString(): string;
  /** The address. */
  toJSON(): string;
}
/** A parsed address; a trusted one is passed on exactly as it was given. */
export interface Address {
  href: string;
  given: string | URL | TrustedAddress;
}

/** @internal Parses the address of an asset; a relative one is resolved as the page's own links are. */
export function addressOf(given: string | URL | TrustedAddress, path: string): Address {
  const kinds = ['String', 'URL', 'TrustedScriptURL'];
  if (!kinds.includes(brandOf(given)))
    throw badOption(path, 'a string, a URL or a TrustedScriptURL', given);
  try {
    return {
      href: new URL(String(given), globalThis.document?.baseURI ?? globalThis.location?.href).href,
      given,
    };
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
/** The package's Trusted Types policy; false if the page does not allow a policy of that name. */
let policy: Policy | false | undefined;

/** @internal Returns a script's address in the form this browser accepts: through the policy `tabtune` where Trusted Types exist. */
export function trusted({ href, given }: Address): string {
  if (brandOf(given) === 'TrustedScriptURL') return given as string;
  const types = Reflect.get(globalThis, 'trustedTypes') as Policies | undefined;
  if (types === undefined) return href;
  try {
    // A page that does not require trusted types may still forbid creating a policy.
    policy ??= types.createPolicy('tabtune', { createScriptURL: (address) => address });
  } catch {
    policy = false;
  }
  return policy ? (policy.createScriptURL(href) as string) : href;
}

/** @internal Returns the error that says why no worker could be made from a script. */
export function refusedWorker(thrown: unknown): Error {
  if (thrown instanceof TypeError && /trusted/i.test(thrown.message)) {
    return fault(
      'worker.blocked',
      {
        found: 'they require trusted types, and allow no policy named tabtune',
        hint: 'name it in `trusted-types` of the Content-Security-Policy, or give workerUrl as a TrustedScriptURL',
      },
      {},
      thrown,
    );
  }
  // A script of another origin, whose address only the bundler knows.
  if (Reflect.get(Object(thrown), 'name') === 'SecurityError') {
    return fault(
      'worker.blocked',
      {
        found: `none may be started from another origin (${messageOf(thrown)})`,
        hint: 'give the address of its script as `workerUrl`: then it is imported, which needs CORS there',
      },
      {},
      thrown,
    );
  }
  return fault(
    'worker.failed',
    { found: `it could not be started: ${messageOf(thrown)}`, hint: '' },
    {},
    thrown,
  );
}
