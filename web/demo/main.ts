import { VERSION } from 'tabtune';

import { Charts } from './charts.js';
import { byId, check, nextRun } from './dom.js';
import { ignoreStrayDrops } from './drop.js';
import { keepForm, restoreForm } from './form.js';
import { grouped, when } from './format.js';
import { CheckpointPanel } from './panels/checkpoints.js';
import { Controls } from './panels/controls.js';
import { DownloadsPanel } from './panels/downloads.js';
import { takeAnywhere } from './panels/drop-anywhere.js';
import { ExportPanel } from './panels/export-as.js';
import { Figures } from './panels/figures.js';
import { GpuPanel } from './panels/gpu.js';
import { Inspector } from './panels/inspector.js';
import { KernelPanel } from './panels/kernels.js';
import { memoryRemedies } from './panels/memory-remedies.js';
import { checkSupport } from './panels/notice.js';
import { Samples } from './panels/samples.js';
import { Setup } from './panels/setup.js';
import { StartGate } from './panels/start-gate.js';
import { TakePanel } from './panels/take.js';
import { installTheme } from './panels/theme.js';
import { Warnings } from './panels/warnings.js';
import { followNumbers } from './numbers.js';
import { offerOptimizers } from './optimizers.js';
import { goTo, installPath } from './path.js';
import { sayPolicy } from './policy.js';
import { answered } from './patience.js';
import { Run } from './run.js';
import { suggest, useSoftware } from './suggestions.js';
import { Trying } from './trying.js';
import { View } from './view.js';
import { faultOf } from './words.js';
import { workerUrl } from './worker.js';

const charts = new Charts();
const figures = new Figures();
/** Shows why a request of the user failed; the run continues. */
const complain = (thrown: unknown): void => controls.say(faultOf(thrown));
const acting = (work: () => Promise<void>) => (): void => {
  work().catch(complain);
};

const acts = {
  start: acting(() => run.start()),
  pause: acting(() => run.togglePause()),
  one: acting(() => run.oneStep()),
  stop: acting(() => run.stop()),
  goon: acting(() => run.goOn()),
  save: acting(() => run.save()),
  away: () => goTo('take'),
  take: acting(async () => void (await run.take())),
  again: acting(() => run.again()),
  skip: acting(() => run.skip()),
  decay: acting(() => run.decay()),
  longer: acting(() => run.longer()),
};
const controls: Controls = new Controls(acts, (state) => take.show(state));
const samples = new Samples(complain);
const view = new View(charts, figures, samples);
const downloads = new DownloadsPanel();
const gate = new StartGate();
const setup = new Setup(
  {
    onPlan: (plan) => {
      if (controls.state === 'setup' && charts.empty) charts.plan(plan);
    },
    start: acting(() => run.start()),
    measure: acting(() => run.measure()),
  },
  downloads,
  gate,
);
const kernels = new KernelPanel(complain);
const checkpoints: CheckpointPanel = new CheckpointPanel({
  resume: (info, generation) => void run.resume(info, generation).catch(complain),
  say: (words) => controls.say(words),
  trainerOf: (id) => run.trainerOf(id),
});
const warnings = new Warnings((code) => {
  if (code === 'run.memory' || code === 'device.out-of-memory')
    return memoryRemedies(run, setup, checkpoints, acting);
  if (code === 'storage.quota') {
    const stored = {
      text: 'See what is stored',
      act: () => byId('kept-title', HTMLElement).scrollIntoView(),
    };
    return [{ text: 'Export the model', act: acting(() => run.export()) }, stored];
  }
  if (code === 'storage.closed') return [{ text: 'Reload', act: () => location.reload() }];
  return [];
});
const exporting = new ExportPanel((words) => controls.say(words));
const run: Run = new Run({
  charts,
  controls,
  exporting,
  figures,
  kernels,
  samples,
  setup,
  checkpoints,
  trying: new Trying({ alone: (work) => run.alone(work), pause: acting(() => run.togglePause()) }),
  view,
  warnings,
});
const take = new TakePanel(() => run.taken, {
  say: (words) => controls.say(words),
  allFormats: acting(() => run.export()),
  checkpoint: () => run.take(),
  newest: (of) => checkpoints.newest(of),
});
const speed = new GpuPanel((work) => run.alone(work), complain);

new Inspector();
ignoreStrayDrops();
takeAnywhere({ ...setup.takes, runs: checkpoints.take }, complain);
installTheme(() => charts.repaint());
installPath();
byId('watch', HTMLButtonElement).addEventListener('click', () => {
  check('model', 'scratch');
  check('data', 'austen');
  setup.refresh(0);
  goTo('train');
  run.start().catch(complain);
});
byId('tune', HTMLButtonElement).addEventListener('click', () => goTo('model'));
const about = byId('about', HTMLDialogElement);
byId('about-open', HTMLButtonElement).addEventListener('click', () => {
  about.showModal();
  sayPolicy(workerUrl).catch(complain);
});
byId('build', HTMLElement).textContent = `Version ${VERSION}.`;

/** Shows the run that was saved last, and offers to continue it. */
async function lastRun(): Promise<string> {
  const last = await checkpoints.newest();
  if (!last) return '';
  const { run: id, label, step, totalSteps, savedAt } = last;
  view.restore(await checkpoints.history(id), totalSteps, { run: id, label });
  // The next run's plan replaces the last run's curves as soon as something is chosen for it.
  const replaced = new AbortController();
  for (const part of nextRun())
    part.addEventListener(
      'input',
      () => {
        replaced.abort();
        if (controls.state === 'setup') view.clear(0);
      },
      { signal: replaced.signal },
    );
  run.offer(last);
  return ` Your last run: ${label}, step ${grouped(step)} of ${grouped(totalSteps)}, saved ${when(savedAt)}.`;
}

async function begin(): Promise<void> {
  controls.show('setup');
  offerOptimizers();
  restoreForm();
  keepForm();
  followNumbers(
    () => setup.label,
    () => setup.refresh(0),
  );
  suggest('fresh', setup.label, undefined);
  // The saved runs need no GPU, and a browser may look for one for a while.
  const listed = Promise.all([checkpoints.refresh(), downloads.refresh()]);
  const { ok, adapter } = await checkSupport();
  await answered(() => listed);
  if (ok && adapter?.software === true) useSoftware();
  await answered(() => checkpoints.trains(ok));
  // A fault in stored data must not prevent the start.
  const last =
    (await answered(() => lastRun().catch((thrown: unknown) => ` ${faultOf(thrown)}`))) ?? '';
  if (!ok) {
    controls.offer(undefined);
    controls.say(`Training is not possible in this browser; the reason is given above.${last}`);
    return;
  }
  gate.allow();
  byId('watch', HTMLButtonElement).disabled = false;
  speed.enable();
  const ready =
    adapter?.software === true
      ? 'Ready, in software.'
      : `Ready: ${[adapter?.vendor, adapter?.architecture].filter(Boolean).join(' ') || 'a GPU was found'}.`;
  controls.say(`${ready}${last}`);
  await setup.show();
  if (new URLSearchParams(location.search).has('run')) await run.start();
}
begin().catch(complain);
