/** Prompts that give no text. */
import { withDetail } from '../protocol/errors.js';
import type { ErrorDetail } from '../protocol/errors.js';
import type { Driver } from '../protocol/protocol.js';
import type { Finding } from '../protocol/reports.js';
import { wasmError } from './wasm.js';
import type { Session } from './wasm.js';

/** The core's word for such a text. */
const UNWRITABLE = 'tokenizer.text';

/** The refusal of a prompt names its field. */
export function ofPrompt<T>(path: 'prompt' | 'samplePrompt', work: () => T): T {
  try {
    return work();
  } catch (thrown) {
    const error = wasmError(thrown);
    throw error.detail.code === UNWRITABLE ? withDetail(error, { path }, `${path}: ${error.message}`) : thrown;
  }
}

/** Of a prompt without tokens, and one that the model's context cannot hold. */
const isOfPrompt = ({ code, path }: ErrorDetail): boolean => code === UNWRITABLE || code === 'model.context' || path === 'prompt';

/** Why a run takes no samples: no prompt is worth the run. Other options of samples are refused. */
export function sampleFault(session: Session, { sampleEvery, samplePrompt, sample }: Driver): Finding | undefined {
  if (sampleEvery === 0) return undefined;
  try {
    ofPrompt('samplePrompt', () => session.generate(samplePrompt, sample)).free();
    return undefined;
  } catch (thrown) {
    const { detail, message } = wasmError(thrown);
    if (!isOfPrompt(detail)) throw thrown;
    return { code: 'run.sample', message: `there will be no samples: ${message.replace(/^prompt: /, 'samplePrompt: ')}` };
  }
}
