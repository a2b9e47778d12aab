// Takes a run out of the browser, continues it with the native program, and brings it back. Weights,
// optimizer, data order and schedule move with it: steps continue where they stopped.
import { openSavedRuns, Trainer } from 'tabtune';

/**
 * One file with the newest checkpoint. In the terminal, with the same data:
 *
 *     tabtune train --resume mine.tabtune --data data.jsonl --out continued
 */
export async function asFile(trainer: Trainer): Promise<File> {
  await trainer.save();
  return trainer.checkpoints.exportFile();
}

/**
 * The same as a folder, which the user picks; call it within a click.
 *
 *     tabtune train --resume FOLDER --data data.jsonl --out continued
 */
export async function asFolder(trainer: Trainer, folder: FileSystemDirectoryHandle): Promise<void> {
  await trainer.save();
  await trainer.checkpoints.exportFolder(folder);
}

/**
 * Brings a run back: a `.tabtune` file, or the files of the folder that the terminal wrote
 * (`continued`, chosen by <input type="file" webkitdirectory>).
 */
export async function back(files: Blob | File[], data: File): Promise<Trainer> {
  using runs = await openSavedRuns();
  const { run, hasData } = await runs.importFile(files);
  return await Trainer.resume(hasData ? { run } : { run, data });
}
