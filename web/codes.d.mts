export const README: string;
export function codes(): string[];
export function listed(readme: string): string[];
