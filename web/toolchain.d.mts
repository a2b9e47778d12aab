/** Makes cargo forget our packages in the folder `target` if another checkout compiled them. */
export function ownTarget(target?: string, checkout?: string): void;
