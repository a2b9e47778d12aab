// Places at which a loss occurs: each function runs in the page, makes steps to `last` in its own way, and returns the faults.

export const inAStep = async (s, { last, at, action, maxSteps }) => {
  await s.step(2);
  await s.current().save();
  await s.tell('arm', { at: { ...at, do: action } });
  if (maxSteps) await s.run({ maxSteps: last - 2 });
  else await s.step(last - 2);
};

export const inASave = async (s, { last, at, action }) => {
  await s.step(2);
  await s.current().save();
  await s.step(1);
  await s.tell('arm', { at: { ...at, do: action } });
  const saved = await s.settled(s.current().save());
  const wrong = saved.ok ? [] : [`save: ${saved.code} ${saved.word} ${saved.message}`];
  if (saved.ok && saved.value.step !== 3) wrong.push(`saved step ${saved.value.step}`);
  const rest = await s.settled(s.step(last - 3));
  if (!rest.ok) wrong.push(`the steps after it: ${rest.code} ${rest.word}`);
  return wrong;
};

export const whilePaused = async (s, { last, action }) => {
  const trainer = s.current();
  const running = (async () => {
    for await (const event of trainer.run({ maxSteps: last }))
      if (event.type === 'step' && event.step === 3) void trainer.pause();
  })();
  const until = async (test) => {
    for (
      const end = performance.now() + 30_000;
      !test();
      await new Promise((done) => setTimeout(done, 10))
    )
      if (performance.now() > end) throw new Error('waited in vain');
  };
  await until(() => s.timeline.some(({ type, state }) => type === 'state' && state === 'paused'));
  const pausedAt = trainer.completedSteps;
  if (action) await s.tell('fire', { action });
  else console.info('paused');
  await until(() =>
    s.timeline.some(({ type, state }) => type === 'state' && state === 'recovering'),
  );
  const from = s.timeline.findIndex(({ state }) => state === 'recovering');
  await until(() =>
    s.timeline.slice(from).some(({ type, state }) => type === 'state' && state === 'paused'),
  );
  const wrong =
    trainer.completedSteps === pausedAt
      ? []
      : [`paused at ${pausedAt}, brought back to ${trainer.completedSteps}`];
  await trainer.resume();
  await running;
  return wrong;
};

export const whileIdle = async (s, { last, action }) => {
  await s.step(3);
  await s.tell('fire', { action });
  await new Promise((done) => setTimeout(done, 1500));
  const heard = s.timeline.some(({ state }) => state === 'recovering')
    ? []
    : ['an idle trainer did not hear of it'];
  await s.step(last - 3);
  return heard;
};

/** Loses the GPU in a call other than stepping, which must return the same as without a loss. */
export const inACall = async (s, { last, call, at }) => {
  await s.step(3);
  const trainer = s.current();
  const calls = {
    evaluate: () => trainer.evaluate().then(({ loss }) => loss),
    export: () => s.digests(),
    exportFile: () =>
      trainer
        .save()
        .then(() => trainer.checkpoints.exportFile())
        .then(({ size }) => size > 0),
    sample: async () => {
      let text = '';
      for await (const token of trainer.sample('It is', { maxTokens: 6, temperature: 0 }))
        text += token.text;
      return text;
    },
    load: () => trainer.checkpoints.load().then(({ completedSteps }) => completedSteps),
  };
  if (call === 'load' || call === 'exportFile') await trainer.save();
  const unbroken = call === 'load' ? undefined : await calls[call]();
  await s.tell('arm', { at: { ...at, do: 'destroy' } });
  const broken = await s.settled(calls[call]());
  const wrong = [];
  // Only a sample that had begun is given up, and reports that the trainer has recovered.
  if (call === 'sample' && !broken.ok) {
    if (broken.code !== 'DEVICE_LOST' || broken.recovered !== true)
      wrong.push(`sample: ${broken.code}, recovered ${broken.recovered}`);
  } else if (!broken.ok) wrong.push(`${call}: ${broken.code} ${broken.word} ${broken.message}`);
  else if (unbroken !== undefined && JSON.stringify(broken.value) !== JSON.stringify(unbroken))
    wrong.push(`${call} gives something else after it`);
  await s.step(last - trainer.completedSteps);
  return wrong;
};
