/** The heading and the lines below it: what is trained, and where. */
import { escaped } from 'tabtune';
import type { ModelInfo } from 'tabtune';

import { byId } from '../dom.js';
import { parameters } from '../format.js';
import type { Trained } from '../optimizers.js';

const story = byId('run-story', HTMLElement);
/** The words of the page for the small new model and its own text. */
const ownWords = [...story.childNodes];

/** Shows what is trained. `isFile` is true if the text is a file of the user. */
export function tellStory(
  { parameters: count }: ModelInfo,
  trained: Trained,
  isFile: boolean,
): void {
  if (trained === 'fresh' && !isFile) story.replaceChildren(...ownWords);
  else if (trained === 'fresh')
    story.textContent =
      'A small Llama with random weights reads your text letter by letter. Watch it find words.';
  else {
    const what =
      trained === 'adapter'
        ? `An adapter is trained on top of its ${parameters(count)} parameters, which do not change`
        : `All ${parameters(count)} parameters are trained`;
    story.textContent = `${what}, on your GPU; your text and the result stay on this device.`;
  }
}

/** Shows that a saved run is resumed. */
export function tellResumed(label: string): void {
  byId('run-title', HTMLElement).textContent = escaped(label) || 'A run without a name';
  story.textContent =
    'It continues where it was saved, with its own text and settings; the form is for the next run.';
}
