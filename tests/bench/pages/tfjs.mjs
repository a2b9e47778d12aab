// @tensorflow/tfjs on its WebGPU backend: the model in its operations, gradients by variableGrads, its Adam and a separate decay.
import * as tf from '@tensorflow/tfjs';
import '@tensorflow/tfjs-backend-webgpu';
import { publish } from './contract.mjs';

publish(async (spec, size, tokens) => {
  await tf.setBackend('webgpu');
  await tf.ready();
  const { d, layers, heads, vocab, T, B } = spec.SIZES[size];
  const { lr, beta1, beta2, eps, weightDecay } = spec.OPT;
  const { cos, sin, half } = spec.ropeTables(size);
  const weights = spec.initWeights(size);
  const variables = weights.map(({ name, shape, data }) =>
    tf.variable(tf.tensor(data, shape), true, name),
  );
  const [c, s] = [tf.tensor(cos, [1, 1, T, half]), tf.tensor(sin, [1, 1, T, half])];
  const mask = tf.tensor(
    Float32Array.from({ length: T * T }, (_, i) => (i % T > Math.floor(i / T) ? -1e9 : 0)),
    [1, 1, T, T],
  );
  const optimizer = tf.train.adam(lr, beta1, beta2, eps);

  const norm = (x, weight) =>
    tf.mul(tf.mul(x, tf.rsqrt(tf.add(tf.mean(tf.square(x), -1, true), spec.NORM_EPS))), weight);
  const rotate = (x) => {
    const [a, b] = tf.split(x, 2, -1);
    return tf.concat([tf.sub(tf.mul(a, c), tf.mul(b, s)), tf.add(tf.mul(b, c), tf.mul(a, s))], -1);
  };
  const perHead = (x) => tf.transpose(tf.reshape(x, [B, T, heads, d / heads]), [0, 2, 1, 3]);

  function lossOf(x, y) {
    const [embedding, ...rest] = variables;
    let h = tf.gather(embedding, x);
    for (let l = 0; l < layers; l++) {
      const [n1, wq, wk, wv, wo, n2, wg, wu, wd] = rest.slice(9 * l, 9 * l + 9);
      const a = norm(h, n1);
      const [q, k, v] = [
        rotate(perHead(tf.matMul(a, wq))),
        rotate(perHead(tf.matMul(a, wk))),
        perHead(tf.matMul(a, wv)),
      ];
      const scores = tf.add(tf.mul(tf.matMul(q, k, false, true), 1 / Math.sqrt(d / heads)), mask);
      const mixed = tf.reshape(tf.transpose(tf.matMul(tf.softmax(scores), v), [0, 2, 1, 3]), [
        B * T,
        d,
      ]);
      h = tf.add(h, tf.matMul(mixed, wo));
      const b = norm(h, n2);
      const gate = tf.matMul(b, wg);
      h = tf.add(h, tf.matMul(tf.mul(tf.mul(gate, tf.sigmoid(gate)), tf.matMul(b, wu)), wd));
    }
    const logits = tf.matMul(norm(h, rest.at(-1)), embedding, false, true);
    return tf.mean(
      tf.sub(tf.logSumExp(logits, -1), tf.sum(tf.mul(logits, tf.oneHot(y, vocab)), -1)),
    );
  }

  function step(index) {
    const { x, y } = spec.batch(size, tokens, index);
    const [xs, ys] = [tf.tensor1d(x, 'int32'), tf.tensor1d(y, 'int32')];
    const { value, grads } = tf.variableGrads(() => lossOf(xs, ys), variables);
    // Adam's change does not depend on the weights, so the decoupled decay can be applied before it.
    tf.tidy(() =>
      variables
        .filter(({ shape }) => shape.length === 2)
        .forEach((weight) => weight.assign(tf.mul(weight, 1 - lr * weightDecay))),
    );
    optimizer.applyGradients(grads);
    tf.dispose([grads, xs, ys]);
    return value;
  }

  const train = async (first, count) => {
    let loss;
    for (let index = first; index < first + count; index++) {
      loss?.dispose();
      loss = step(index);
    }
    return [(await loss.data())[0]];
  };
  return { params: weights.reduce((sum, { data }) => sum + data.length, 0), sameInit: true, train };
});
