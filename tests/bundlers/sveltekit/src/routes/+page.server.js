import { support, VERSION } from 'tabtune';

/** Rendered on the server, which has no GPU and says so. */
export async function load() {
  const { ok, code } = await support();
  return { server: `${VERSION} ${ok} ${code}` };
}
