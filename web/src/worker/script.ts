/** Returns the script of this worker, which the page keeps for later ones, or undefined if it cannot be read; `address` is where a Blob imports it from. */
export async function ownScript(address = globalThis.location?.href): Promise<string | undefined> {
  try {
    // The browser has just loaded it.
    const response = await fetch(address, { cache: 'force-cache' });
    return response.ok ? await response.text() : undefined;
  } catch {
    return undefined;
  }
}
