/** Suggestions for using less memory without changing the batch of a step, those with the fewest side effects first. */
import { count, flag, record, text } from '../protocol/parse.js';

/** Settings of the core that determine the memory; all of them are present. */
const settings = record({
  batch_size: count,
  gradient_accumulation_steps: count,
  seq_len: count,
  gradient_release: flag,
  gradient_checkpointing: flag,
  precision: text,
});

export function proposals(config: unknown): string {
  const {
    batch_size: batch,
    gradient_accumulation_steps: accumulated,
    ...given
  } = settings(config, 'config');
  const ways: string[] = [];
  if (batch % 2 === 0 && !given.gradient_release) {
    ways.push(
      `batchSize ${batch / 2} with gradientAccumulationSteps ${accumulated * 2}, which is the same batch`,
    );
  }
  if (!given.gradient_checkpointing) ways.push('gradientCheckpointing true');
  if (given.precision !== 'bf16') ways.push("a new run with precision 'bf16'");
  ways.push(`a seqLen below ${given.seq_len} in a new run`);
  return `the settings were not changed: resume it with ${ways.join(', or with ')}`;
}
