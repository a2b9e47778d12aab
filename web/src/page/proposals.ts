/** Ways to need less memory without changing the batch of a step, those with the least side effects first. */
function setting(config: unknown, key: string): unknown {
  return typeof config === 'object' && config !== null ? Reflect.get(config, key) : undefined;
}

export function proposals(config: unknown): string {
  const given = (key: string, otherwise: number): number => {
    const value = setting(config, key);
    return typeof value === 'number' ? value : otherwise;
  };
  const [batch, accumulated] = [given('batch_size', 4), given('gradient_accumulation_steps', 1)];
  const ways: string[] = [];
  if (batch % 2 === 0 && setting(config, 'gradient_release') !== true) {
    ways.push(`batchSize ${batch / 2} with gradientAccumulationSteps ${accumulated * 2}, which is the same batch`);
  }
  if (setting(config, 'gradient_checkpointing') !== true) ways.push('gradientCheckpointing true');
  if (setting(config, 'precision') !== 'bf16') ways.push("a new run with precision 'bf16'");
  ways.push(`a seqLen below ${given('seq_len', 128)} in a new run`);
  return `the GPU has too little memory for a step, so the run is paused and nothing was made smaller. Resume it with ${ways.join(', or with ')}.`;
}
