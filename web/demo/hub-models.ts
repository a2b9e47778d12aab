/** Models of the Hugging Face Hub that suit a tab, smallest first, with the sizes that are known without asking the hub. */
import sizes from './assets/hub-models.json';
import { bytes } from './format.js';

const SIZED = sizes.map(({ name, weightBytes, adapterBytes }) => ({
  name,
  facts: `${bytes(weightBytes)} of weights; an adapter needs about ${bytes(adapterBytes)} of GPU memory`,
}));

export const SUGGESTED: readonly { name: string; facts: string }[] = [
  ...SIZED,
  { name: 'Qwen/Qwen3-0.6B', facts: 'sizes are shown when it is opened' },
  {
    name: 'google/gemma-3-270m-it',
    facts: 'sizes are shown when it is opened, with a token: its terms have to be accepted',
  },
];
