export class StageError extends Error {}

export class Stages {
  constructor(names: string[], options?: { alone?: boolean });
  done(name: string, why: string): void;
  run<T>(name: string, options: { key?: string; advice: string }, work: (onLine: (line: string) => void) => Promise<T>): Promise<T>;
}
