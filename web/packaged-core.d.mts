/** Copies the core of a package into `folder` if it was built from these inputs; returns whether it was. */
export function takePackagedCore(inputs: string, folder: string): boolean;
