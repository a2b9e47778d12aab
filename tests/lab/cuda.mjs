// npm run lab -- cuda: compiles native-runner/cuda, a separate workspace, and runs it: tabtune's kernels compared with Burn's own operations on CUDA.
// Without a CUDA device it says so, and succeeds unless REQUIRE_CUDA=1. Arguments are passed to the program (`--help` lists them).
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setupCompiler } from '../../web/setup.mjs';
import { StageError, Stages } from '../../web/stages.mjs';
import { cacheDir, environment, ownTarget, root, run } from '../../web/toolchain.mjs';

const STAGE = 'compile the CUDA witness';
const ADVICE = 'mend what the compiler says above and run this again; what was compiled is kept. Nothing of CUDA is needed to compile it.';
/** A separate folder, because Burn has an additional backend here. */
const target = join(cacheDir, 'cuda');

/** Runs the program on this terminal; returns its exit status. */
const program = (args) =>
  new Promise((ended, failed) => {
    const path = join(target, 'debug', process.platform === 'win32' ? 'tabtune-cuda.exe' : 'tabtune-cuda');
    spawn(path, args, { stdio: 'inherit', env: environment })
      .on('error', failed)
      .on('close', (code) => ended(code ?? 1));
  });

try {
  process.chdir(root);
  const stages = new Stages([STAGE]);
  await setupCompiler();
  const key = `${STAGE}${existsSync(join(target, 'debug', 'deps')) ? '' : ', first'}`;
  await stages.run(STAGE, { key, advice: ADVICE }, (onLine) => {
    ownTarget(target);
    const args = ['build', '--locked', '--manifest-path', join('native-runner', 'cuda', 'Cargo.toml')];
    return run('cargo', args, { quiet: true, onLine, env: { CARGO_TARGET_DIR: target } });
  });
  process.exitCode = await program(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof StageError)) console.error(`cuda: ${error.message}`);
  process.exitCode = 1;
}
