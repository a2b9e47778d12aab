// Fine-tunes a model on conversations and returns a GGUF file for llama.cpp. Each line of `chats` is
// {"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}]}; the model's
// own chat template writes it, and only the assistant's answers are learned.
import { inspectData, openModel, Trainer } from 'tabtune';

/** `files` are a GGUF file or the files of a Hugging Face folder, as an <input type="file" multiple> gives them. */
export async function fineTune(
  files: FileList | File[],
  chats: File,
  question: string,
  show: (line: string) => void,
): Promise<Blob> {
  using model = await openModel(files);

  // What would be learned, and what is wrong with the rows, before anything is trained.
  const { report } = await inspectData(chats, { model });
  for (const warning of report.warnings) show(warning.message);

  const { ok, needBytes } = await Trainer.estimate(model);
  if (ok === false) throw new Error(`This needs ${Math.ceil(needBytes / 1e9)} GB of GPU memory.`);

  // Learning rate, passes and so on are chosen by what is trained. For a large model, add
  // adapter: { r: 16, alpha: 32, targetModules: 'all-linear' }
  await using trainer = await Trainer.create({ model, data: chats });
  for (const { name, value, reason } of trainer.settings.chosen)
    show(`${name} = ${JSON.stringify(value)}: ${reason}`);

  for await (const event of trainer.run()) {
    if (event.type === 'step') show(`step ${event.step}: loss ${event.loss.toFixed(3)}`);
    if (event.type === 'warning') show(event.message);
  }

  let answer = '';
  const asked = [{ role: 'user', content: question }];
  for await (const token of trainer.chat(asked, { maxTokens: 60 })) answer += token.text;
  show(answer);

  return await trainer.export({ format: 'gguf', type: 'q8_0' });
}
