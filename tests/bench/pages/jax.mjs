// @jax-js/jax: the model in its numpy, one jitted step of loss, gradients and AdamW. Arrays are owned: `.ref` keeps one for another use.
import { defaultDevice, init, jit, nn, numpy as np, tree, valueAndGrad } from '@jax-js/jax';
import { publish } from './contract.mjs';

publish(async (spec, size, tokens) => {
  await init('webgpu');
  defaultDevice('webgpu');
  const { d, layers, heads, vocab, T, B } = spec.SIZES[size];
  const { lr, beta1, beta2, eps, weightDecay } = spec.OPT;
  const { cos, sin, half } = spec.ropeTables(size);
  const weights = spec.initWeights(size);
  const decays = weights.map(({ shape }) => shape.length === 2);
  const table = (data) => np.array(data).reshape([T, 1, half]);

  const norm = (x, weight) => {
    const scale = np.sqrt(np.square(x.ref).mean(-1, { keepdims: true }).add(spec.NORM_EPS));
    return x.div(scale).mul(weight);
  };
  const rotate = (x, c, s) => {
    const [a, b] = np.split(x, 2, -1);
    return np.concatenate([a.ref.mul(c.ref).sub(b.ref.mul(s.ref)), b.mul(c).add(a.mul(s))], -1);
  };

  function lossOf(params, x, y, c, s) {
    const [embedding, ...rest] = params;
    const last = rest.pop();
    // By one-hot rows, not by gathering: under jit the gradient of a gather fails ("scatter input is not imm").
    let h = np.matmul(nn.oneHot(x, vocab), embedding.ref);
    for (let l = 0; l < layers; l++) {
      const [n1, wq, wk, wv, wo, n2, wg, wu, wd] = rest.slice(9 * l, 9 * l + 9);
      const a = norm(h.ref, n1);
      const head = (w) => np.matmul(a.ref, w).reshape([B, T, heads, d / heads]);
      const [q, k, v] = [rotate(head(wq), c.ref, s.ref), rotate(head(wk), c.ref, s.ref), head(wv)];
      a.dispose();
      h = h.add(
        np.matmul(nn.dotProductAttention(q, k, v, { isCausal: true }).reshape([B, T, d]), wo),
      );
      const b = norm(h.ref, n2);
      h = h.add(np.matmul(nn.silu(np.matmul(b.ref, wg)).mul(np.matmul(b, wu)), wd));
    }
    c.dispose();
    s.dispose();
    const logits = np.matmul(norm(h, last).reshape([B * T, d]), np.matrixTranspose(embedding));
    const picked = logits.ref.mul(nn.oneHot(y.reshape([B * T]), vocab)).sum(-1);
    return nn.logsumexp(logits, -1).sub(picked).mean();
  }

  const update = jit((params, ms, vs, x, y, c, s, mScale, vScale) => {
    const [loss, grads] = valueAndGrad(lossOf)(tree.ref(params), x, y, c, s);
    const next = params.map((p, i) => {
      const g = grads[i];
      const m = ms[i].mul(beta1).add(g.ref.mul(1 - beta1));
      const v = vs[i].mul(beta2).add(np.square(g).mul(1 - beta2));
      let change = m.ref.mul(mScale.ref).div(np.sqrt(v.ref.mul(vScale.ref)).add(eps));
      if (decays[i]) change = change.add(p.ref.mul(weightDecay));
      return [p.sub(change.mul(lr)), m, v];
    });
    mScale.dispose();
    vScale.dispose();
    return [loss, ...[0, 1, 2].map((part) => next.map((each) => each[part]))];
  });

  let params = weights.map(({ data, shape }) => np.array(data).reshape(shape));
  let ms = weights.map(({ shape }) => np.zeros(shape));
  let vs = weights.map(({ shape }) => np.zeros(shape));
  const [c, s] = [table(cos), table(sin)];
  const ids = (values) => np.array(values, { dtype: np.int32 }).reshape([B, T]);
  const scale = (beta, step) => np.array(new Float32Array([1 / (1 - beta ** step)])).reshape([]);

  const train = async (first, count) => {
    let loss;
    for (let step = first; step < first + count; step++) {
      const { x, y } = spec.batch(size, tokens, step);
      loss?.dispose();
      [loss, params, ms, vs] = update(
        params,
        ms,
        vs,
        ids(x),
        ids(y),
        c.ref,
        s.ref,
        scale(beta1, step + 1),
        scale(beta2, step + 1),
      );
    }
    return [(await loss.data())[0]];
  };
  return { params: weights.reduce((sum, { data }) => sum + data.length, 0), sameInit: true, train };
});
