/** Copies the core of a package into `folder` if it is one of these inputs; gives whether it is. */
export function takePackagedCore(inputs: string, folder: string): boolean;
