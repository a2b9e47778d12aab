export const FOLDERS: Record<'release' | 'quick', { core: string; package: string; demo: string }>;
export const built: { kind: 'release' | 'quick'; core: string; package: string; demo: string };
