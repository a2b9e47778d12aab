// Our model in Burn's own operations, in a separate module.
import init, { StockRun } from 'tabtune-bench';
import { publish } from './contract.mjs';

publish(async (_spec, size) => {
  const exports = await init();
  exports.__wasm_call_ctors?.();
  const run = await StockRun.create(size);
  const train = async (_first, count) => {
    const losses = [];
    while (losses.length < count) losses.push(await run.step());
    return losses;
  };
  return { params: run.parameters(), sameInit: true, train };
});
