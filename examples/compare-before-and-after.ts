// Answers the question whether training helped: the loss on rows that are never trained on, before and
// after, and the answers to the same questions. With an adapter both come from one run, since the base
// remains as it was.
import { openModel, Trainer } from 'tabtune';

export interface Comparison {
  /** Mean loss of the held-out rows, in nats per token: lower is better. */
  loss: { before: number; after: number };
  answers: { question: string; before: string; after: string }[];
}

/** Keep `heldOut` apart from `data`: a model that has seen the rows looks better than it is. */
export async function compare(
  files: File[],
  data: File,
  heldOut: File,
  questions: readonly string[],
): Promise<Comparison> {
  using model = await openModel(files);
  await using trainer = await Trainer.create({
    model,
    data,
    validationData: heldOut,
    adapter: { r: 16, alpha: 32, targetModules: 'all-linear' },
  });

  // Greedy answers, so that the difference is the model's and not that of chance.
  const answer = async (question: string, base: boolean): Promise<string> => {
    let text = '';
    const asked = [{ role: 'user', content: question }];
    const options = { base, maxTokens: 60, temperature: 0 };
    for await (const token of trainer.chat(asked, options)) text += token.text;
    return text;
  };

  const { loss: before } = await trainer.evaluate();
  for await (const event of trainer.run())
    if (event.type === 'eval') console.log(event.step, event.loss);
  const { loss: after } = await trainer.evaluate();

  const answers = [];
  for (const question of questions)
    answers.push({
      question,
      before: await answer(question, true),
      after: await answer(question, false),
    });
  return { loss: { before, after }, answers };
}
