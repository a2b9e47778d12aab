// Which build of the core the package, the demo and the browser tests are made of: the released one, or with TABTUNE_CORE=quick the quick one,
// which `npm test` has. Each has folders of its own, so that neither takes the place of the other.

/** Folders of the repository: the compiled core, the package and the built demo, by the kind of the core. */
export const FOLDERS = {
  release: { core: 'web/pkg', package: 'dist', demo: 'web/dist' },
  quick: { core: 'web/pkg-quick', package: 'dist-quick', demo: 'web/dist-quick' },
};

const kind = process.env.TABTUNE_CORE || 'release';
if (!Object.hasOwn(FOLDERS, kind)) throw new Error(`TABTUNE_CORE: expected ${Object.keys(FOLDERS).join(' or ')}, found ${kind}`);

export const built = { kind, ...FOLDERS[kind] };
