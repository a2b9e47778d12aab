/** Forgets what another checkout compiled of our packages in the cargo folder `target`. */
export function ownTarget(target?: string, checkout?: string): void;
