export const SCHEMA: string;
export function generated(schema: unknown, document?: (path: string) => string): Record<string, string>;
