// npm run lab -- cuda: compiles native-runner/cuda, a separate workspace, and runs it: tabtune's kernels compared with Burn's own operations on CUDA.
// Without a CUDA device it says so, and succeeds unless REQUIRE_CUDA=1. Arguments are passed to the program (`--help` lists them).
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { setupCompiler } from '../../web/setup.mjs';
import { Stages, script } from '../../web/stages.mjs';
import { cacheDir, environment, ownTarget, programIn, root, run } from '../../web/toolchain.mjs';

const STAGE = 'compile the CUDA witness';
const ADVICE =
  'mend what the compiler says above and run this again; what was compiled is kept. Nothing of CUDA is needed to compile it.';
/** A separate folder, because Burn has an additional backend here. */
const target = join(cacheDir, 'cuda');

/** Runs the program on this terminal; returns its exit status. @param {string[]} args @returns {Promise<number>} */
const program = (args) =>
  new Promise((ended, failed) => {
    spawn(programIn(target, 'tabtune-cuda'), args, { stdio: 'inherit', env: environment })
      .on('error', failed)
      .on('close', (code) => ended(code ?? 1));
  });

process.chdir(root);
await script('cuda', async () => {
  await setupCompiler();
  await new Stages([STAGE]).run(STAGE, ADVICE, (onLine) => {
    ownTarget(target);
    const args = [
      'build',
      '--locked',
      '--manifest-path',
      join('native-runner', 'cuda', 'Cargo.toml'),
    ];
    return run('cargo', args, { quiet: true, onLine, env: { CARGO_TARGET_DIR: target } });
  });
  return program(process.argv.slice(2));
});
