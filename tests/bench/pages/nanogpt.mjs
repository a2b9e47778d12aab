// @genai-fi/nanogpt: it has no SwiGLU, so this is its nearest model: RMSNorm, rotary positions, tied embedding, and a GELU block of two matrices with
// as many parameters as the three of SwiGLU. Initial weights are its own; the step is that of its trainer.
// that hold as many parameters as the three of SwiGLU. Initial weights are its own; the step is that of its trainer.
import { selectBackend } from 'nanogpt/backend.js';
// The tensor2d of the TensorFlow.js inside the package, which is not exported under a public name.
import { I as tensor2d } from 'nanogpt/dist-Da20xy8E.js';
import NanoGPT from 'nanogpt/models/NanoGPTV1.js';
import BasicTrainer from 'nanogpt/training/BasicTrainer.js';
import { publish } from './contract.mjs';

publish(async (spec, size, tokens) => {
  await selectBackend('webgpu');
  const { d, layers, heads, ffn, vocab, T, B } = spec.SIZES[size];
  const { lr, beta1, beta2, eps, weightDecay } = spec.OPT;
  const model = new NanoGPT({
    vocabSize: vocab,
    blockSize: T,
    nLayer: layers,
    nHead: heads,
    nEmbed: d,
    mlpFactor: (1.5 * ffn) / d,
    useRope: true,
  });
  const constant = {
    learningRate: lr,
    minLearningRate: lr,
    warmupSteps: 0,
    decayEpochs: 1,
    epochSteps: 1e9,
  };
  const trainer = new BasicTrainer(model, undefined, {
    ...constant,
    beta1,
    beta2,
    epsilon: eps,
    weightDecay,
  });
  const train = async (first, count) => {
    let loss;
    for (let step = first; step < first + count; step++) {
      const { x, y } = spec.batch(size, tokens, step);
      const [xs, ys] = [tensor2d(x, [B, T], 'int32'), tensor2d(y, [B, T], 'int32')];
      loss?.dispose();
      loss = trainer.trainStep({}, { xs, ys });
      xs.dispose();
      ys.dispose();
    }
    return [(await loss.data())[0]];
  };
  // Layers are made in the first step, so they are counted after it.
  return {
    get params() {
      return model.getNumParams();
    },
    sameInit: false,
    train,
  };
});
