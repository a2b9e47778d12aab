/** Prompts from which no text can be generated. */
import { withDetail } from '../protocol/errors.js';
import type { ErrorDetail } from '../protocol/errors.js';
import type { Driver } from '../protocol/protocol.js';
import type { Finding } from '../protocol/reports.js';
import { wasmError } from './wasm.js';
import type { Session } from './wasm.js';

/** The core's code for a prompt without tokens. */
const UNWRITABLE = 'tokenizer.text';

/** Names the field in the refusal of a prompt. */
export function ofPrompt<T>(path: 'prompt' | 'samplePrompt', work: () => T): T {
  try {
    return work();
  } catch (thrown) {
    const error = wasmError(thrown);
    throw error.detail.code === UNWRITABLE ? withDetail(error, { path }, `${path}: ${error.message}`) : thrown;
  }
}

/** Returns whether the fault is that of a prompt: without tokens, or too long for the model's context. */
const isOfPrompt = ({ code, path }: ErrorDetail): boolean => code === UNWRITABLE || code === 'model.context' || path === 'prompt';

/** Returns the reason why a run takes no samples, because a bad prompt should not prevent the run. Other invalid sample options are refused. */
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
