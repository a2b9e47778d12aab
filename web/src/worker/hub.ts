/** Repositories of the Hugging Face Hub, or of a mirror, by name: their files at one commit. */
import { escaped, fault, finding } from '../protocol/errors.js';
import { count, listOf, optional, record, text } from '../protocol/parse.js';
import type { SourceSpec } from '../protocol/protocol.js';
import type { Finding, OnProgress } from '../protocol/reports.js';
import { noRoom } from './download-stores.js';
import { refusedByHub, unansweredReason } from './http-refusals.js';
import { request } from './http-request.js';
import type { UrlSpec } from './http-request.js';
import { dataFiles, modelFiles } from './hub-files.js';
import type { HubFile } from './hub-files.js';
import { progressOf } from './progress.js';
import { keepListing, keptBySum, keptListing } from './storage/kept-downloads.js';
import { freeBytes } from './storage/quota.js';
import type { JsSource } from './wasm.js';
import { aborting } from './whole-download.js';

export type HubSpec = Extract<SourceSpec, { kind: 'hub' }>;

/** The part of the hub's answer that is read (`blobs=true`); a file in LFS has the SHA-256 of its contents, any other its id in git. */
const listing = record({
  sha: text,
  siblings: listOf(
    record({
      rfilename: text,
      size: optional(count),
      blobId: optional(text),
      lfs: optional(record({ sha256: text, size: count })),
    }),
  ),
});

const COMMIT = /^[0-9a-f]{40}$/;

/** Returns how messages name a repository. */
const subjectOf = ({ dataset, repo, revision }: HubSpec): string =>
  `hf:${dataset ? 'datasets/' : ''}${repo}@${revision}`;

const pageOf = ({ hub, dataset, repo }: HubSpec): string =>
  `${hub}/${dataset ? 'datasets/' : ''}${repo}`;

const partsOf = ({ token }: HubSpec): NonNullable<UrlSpec['parts']> => ({
  fields: { referrerPolicy: 'no-referrer' },
  headers: token === undefined ? [] : [['authorization', `Bearer ${token}`]],
});

interface Listed {
  commit: string;
  files: HubFile[];
  warning?: Finding | undefined;
}

function read(spec: HubSpec, body: string): Omit<Listed, 'warning'> {
  try {
    const { sha, siblings } = listing(JSON.parse(body), 'listing');
    if (!COMMIT.test(sha)) throw new Error('no commit');
    const files = siblings.map(({ rfilename, size = 0, blobId, lfs }) => ({
      path: rfilename,
      size: lfs?.size ?? size,
      sum: lfs?.sha256 ?? blobId,
    }));
    return { commit: sha, files };
  } catch (thrown) {
    const found = `${escaped(spec.hub)} answered with something else than a list of its files`;
    throw fault('source.download', { subject: subjectOf(spec), found }, {}, thrown);
  }
}

/** Lists the files of a repository: from what is kept if the revision is a commit, or if the hub cannot be reached. */
async function listed(spec: HubSpec, signal: AbortSignal): Promise<Listed> {
  const revision = spec.commit ?? spec.revision;
  const api = `${spec.hub}/api/${spec.dataset ? 'datasets' : 'models'}/${spec.repo}/revision/`;
  const kept = await keptListing(api, revision);
  if (kept && COMMIT.test(revision)) return read(spec, kept.body);
  const url = `${api}${encodeURIComponent(revision)}?blobs=true`;
  const subject = subjectOf(spec);
  let body: string;
  try {
    const parts = partsOf(spec);
    const response = await request({ kind: 'url', name: '', url, parts }, signal);
    if (response.status !== 200) throw refusedByHub(subject, pageOf(spec), response);
    body = await response.text();
  } catch (thrown) {
    if (signal.aborted || !(thrown instanceof TypeError)) throw thrown;
    if (!kept) throw fault('source.download', { subject, found: unansweredReason() }, {}, thrown);
    const { commit, files } = read(spec, kept.body);
    return { commit, files, warning: finding('hub.offline', { subject, found: commit }) };
  }
  const found = read(spec, body);
  if (spec.keep !== false)
    for (const each of new Set([revision, found.commit]))
      await keepListing({ listing: api, revision: each, savedAt: Date.now(), body }).catch(
        () => undefined,
      );
  return found;
}

/** Refuses files that do not fit, before the first byte. */
async function refuseTooMany(subject: string, specs: readonly UrlSpec[]): Promise<void> {
  let need = 0;
  for (const { sum, size = 0 } of specs)
    if (sum === undefined || !(await keptBySum(sum))) need += size;
  const free = need > 0 ? await freeBytes() : undefined;
  if (free !== undefined && need > free) throw noRoom(subject, need, free);
}

/** Returns the files of a repository that an opening takes, each with its address and sum, and reports their sizes. */
export async function hubFiles(
  spec: HubSpec,
  signal: AbortSignal,
  onProgress: OnProgress,
): Promise<{ specs: UrlSpec[]; warnings: Finding[] }> {
  const { commit, files, warning } = await aborting(signal, () => listed(spec, signal));
  const { path, quant, repo, revision, keep } = spec;
  const subject = subjectOf(spec);
  const wish = { subject, path, quant };
  const { taken, left } = spec.dataset
    ? dataFiles(wish, files)
    : { taken: modelFiles(wish, files), left: [] };
  const page = pageOf(spec);
  const specs = taken.map(({ path: name, size, sum }): UrlSpec => {
    const url = `${page}/resolve/${commit}/${name.split('/').map(encodeURIComponent).join('/')}`;
    const named = spec.dataset ? `datasets/${repo}` : repo;
    const hub = { repo: named, revision, commit, page };
    return { kind: 'url', name, url, parts: partsOf(spec), sum, size, keep, hub };
  });
  if (keep !== false) await refuseTooMany(subject, specs);
  for (const { name, size = 0 } of specs) onProgress(progressOf('download', name, 0, size));
  const names = left.map((file) => file.path).join(', ');
  const passed = left.length > 0 ? [finding('hub.left', { subject, found: escaped(names) })] : [];
  return { specs, warnings: [...(warning ? [warning] : []), ...passed] };
}

/** Refuses a file of a repository that has the name of another file: only the first would count. */
export function refuseTwice(sources: readonly JsSource[]): void {
  const lastOf = ({ name }: JsSource): string => name.replace(/^.*\//, '');
  for (const source of sources) {
    const subject = lastOf(source);
    const same = sources.filter((other) => lastOf(other) === subject);
    if (same.length < 2 || source.hub === undefined || /\.gguf$/i.test(subject)) continue;
    const expected = same.map((each) => each.hub?.page ?? each.name).join(', ');
    throw fault('source.duplicate', { subject, expected, found: same.length }, { path: 'files' });
  }
}
