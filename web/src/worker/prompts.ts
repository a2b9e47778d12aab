/** Prompts from which no text can be generated. */
import { finding, withDetail } from '../protocol/errors.js';
import type { ErrorDetail } from '../protocol/errors.js';
import type { Driver } from '../protocol/protocol.js';
import type { Finding } from '../protocol/reports.js';
import { parsed, wasmError } from './wasm.js';
import type { Session } from './wasm.js';

/** The core's code for a prompt without tokens. */
const UNWRITABLE = 'tokenizer.text';

/** Names the field in the refusal of a prompt. */
export function ofPrompt<T>(path: 'prompt' | 'samplePrompt', work: () => T): T {
  try {
    return work();
  } catch (thrown) {
    const error = wasmError(thrown);
    throw error.detail.code === UNWRITABLE
      ? withDetail(error, { path }, `${path}: ${error.message}`)
      : thrown;
  }
}

/** Returns whether the fault is that of a prompt: without tokens, or too long for the model's context. */
const isOfPrompt = ({ code, path }: ErrorDetail): boolean =>
  code === UNWRITABLE || code === 'model.context' || path === 'prompt';

/**
 * Tries the prompt of a run's samples. Returns the warnings about it, and whether there will be no samples, because a bad prompt should not prevent
 * the run. Other invalid sample options are refused.
 */
export function triedSample(
  session: Session,
  { sampleEvery, samplePrompt, sample }: Driver,
): { warnings: Finding[]; fails: boolean } {
  if (sampleEvery === 0) return { warnings: [], fails: false };
  try {
    const stream = ofPrompt('samplePrompt', () => session.generate(samplePrompt, sample));
    const named = ({ code, message }: Finding): Finding => ({
      code,
      message: `samplePrompt: ${message}`,
    });
    const warnings = parsed.findings(stream.warnings()).map(named);
    stream.free();
    return { warnings, fails: false };
  } catch (thrown) {
    const { detail, message } = wasmError(thrown);
    if (!isOfPrompt(detail)) throw thrown;
    const found = message.replace(/^prompt: /, 'samplePrompt: ');
    return { warnings: [finding('run.sample', { found })], fails: true };
  }
}
