// The build of the core from which the package, the demo and the browser tests are made: the release build, or with TABTUNE_CORE=quick the quick one,
// which `npm test` uses. Each has its own folders, so that neither replaces the other.

/** Folders of the repository: the compiled core, the package and the built demo, by the kind of the core. */
export const FOLDERS = {
  release: { core: 'web/pkg', package: 'dist', demo: 'web/dist' },
  quick: { core: 'web/pkg-quick', package: 'dist-quick', demo: 'web/dist-quick' },
};

const kind = /** @type {keyof typeof FOLDERS} */ (process.env.TABTUNE_CORE || 'release');
if (!Object.hasOwn(FOLDERS, kind))
  throw new Error(`TABTUNE_CORE: expected ${Object.keys(FOLDERS).join(' or ')}, found ${kind}`);

export const built = { kind, ...FOLDERS[kind] };
