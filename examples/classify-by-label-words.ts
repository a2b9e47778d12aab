// Trains a language model to sort texts into classes, and asks it for the class of a new text. The
// rows are a table (CSV or JSON lines) with the columns `text` and `label`; a class is the word that
// the model finds likeliest after the text, so no other kind of model is needed.
import { Trainer } from 'tabtune';
import type { Model } from 'tabtune';

const PROMPT = 'Text: {text}\nLabel:';
const COMPLETION = ' {label}';

/** Trains on the rows; only the labels are learned. The trainer takes the model over. */
export async function trainClassifier(model: Model, rows: File): Promise<Trainer> {
  const columns = { prompt: PROMPT, completion: COMPLETION };
  const trainer = await Trainer.create({ model, data: rows, columns });
  for await (const event of trainer.run())
    if (event.type === 'warning') console.warn(event.message);
  return trainer;
}

/** Returns the labels with their probabilities, likeliest first. */
export async function classify(
  trainer: Trainer,
  text: string,
  labels: readonly string[],
): Promise<{ label: string; probability: number }[]> {
  const sums: number[] = [];
  for (const label of labels) {
    const filled = (PROMPT + COMPLETION).replace('{text}', () => text).replace('{label}', label);
    const { tokens } = await trainer.score(filled);
    // The tokens before the label are the same for all labels, so they do not affect the comparison.
    sums.push(tokens.reduce((sum, { logprob = 0 }) => sum + logprob, 0));
  }
  const most = Math.max(...sums);
  const shares = sums.map((sum) => Math.exp(sum - most));
  const total = shares.reduce((sum, share) => sum + share, 0);
  return labels
    .map((label, index) => ({ label, probability: (shares[index] ?? 0) / total }))
    .sort((a, b) => b.probability - a.probability);
}
