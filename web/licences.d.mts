/** A package of others with its licence, as an SPDX expression, and the texts of it. */
export interface Licensed {
  name: string;
  licence: string;
  source?: string | undefined;
  authors?: string[];
  texts: string[];
}
export const PACKAGE: string[];
export const PAGE: string[];
export function crates(): Licensed[];
export function npmPackages(folders: string[]): Licensed[];
export function listed(packages: Licensed[]): string;
export function notices(folders: string[]): string;
