/** Returns the expected duration of a stage, in words. */
export function outlook(stage: { seconds: number; last?: number; usual?: number; progress?: number }): string;
export class StageError extends Error {}

export class Stages {
  constructor(names: string[], options?: { alone?: boolean });
  done(name: string, why: string): void;
  run<T>(name: string, options: { key?: string; advice: string }, work: (onLine: (line: string, progress?: number) => void) => Promise<T>): Promise<T>;
}
