import { support, VERSION } from 'tabtune';
import { Training } from './training';

// Rendered on the server at each request, which has no GPU and says so.
export const dynamic = 'force-dynamic';

export default async function Page() {
  const { ok, code } = await support();
  return (
    <main>
      <p id="server">{`${VERSION} ${ok} ${code}`}</p>
      <Training />
    </main>
  );
}
