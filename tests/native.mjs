// The native packages: compiled once for lint, tests and the program, and the examples of their documentation.
import { dirname, join } from 'node:path';
import { environment, run } from '../web/toolchain.mjs';
import { add, settle } from './counts.mjs';

/**
 * Environment that lets Clippy compile our packages while it checks them, so that the tests run the same binaries: a separate `cargo clippy` would go
 * through all dependencies a second time.
 */
const COMPILED_BY_CLIPPY = { RUSTC_WORKSPACE_WRAPPER: 'clippy-driver' };

/** Path of the native program, which the tests receive in `TABTUNE`. */
export const program = join(environment.CARGO_TARGET_DIR, 'debug', process.platform === 'win32' ? 'tabtune.exe' : 'tabtune');

/**
 * Compiles every native target of every package once for lint, tests and the program; returns the test binaries, and the warnings of the compiler and
 * Clippy.
 */
export async function compileNative(onLine) {
  const binaries = [];
  const told = [];
  const take = (line) => {
    if (!line.startsWith('{')) {
      if (!/^ *(Blocking|Building|Downloaded|Downloading|Compiling|Finished|Updating) /.test(line)) told.push(line);
      return onLine(line);
    }
    const { reason, target, profile, executable, manifest_path: manifest } = JSON.parse(line);
    if (reason === 'compiler-artifact' && profile.test && executable)
      binaries.push({ name: target.name, path: executable, folder: dirname(manifest) });
  };
  const args = ['build', '--workspace', '--bins', '--tests', '--locked', '--message-format', 'json-render-diagnostics'];
  await run('cargo', args, { quiet: true, onLine: take, env: COMPILED_BY_CLIPPY });
  return { binaries, told: told.some((line) => /^warning\b/.test(line)) ? told : [] };
}

/** Runs the examples of the documentation. */
export async function docTests() {
  const result = { passed: 0, failed: 0 };
  const onLine = (line) => {
    const found = /^test result: \S+ (\d+) passed; (\d+) failed;/.exec(line);
    if (found) Object.assign(result, add(result, { passed: Number(found[1]), failed: Number(found[2]) }));
  };
  const code = await run('cargo', ['test', '--workspace', '--doc', '--locked', '--quiet'], {
    allowFailure: true,
    onLine,
    env: { ...COMPILED_BY_CLIPPY, REQUIRE_GPU: '1' },
  });
  return settle(result, code);
}
