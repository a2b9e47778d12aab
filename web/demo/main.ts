import { VERSION } from 'tabtune';

import { Charts } from './charts.js';
import { byId } from './dom.js';
import { ignoreStrayDrops } from './drop.js';
import { CheckpointPanel } from './panels/checkpoints.js';
import { Controls } from './panels/controls.js';
import { Figures } from './panels/figures.js';
import { KernelPanel } from './panels/kernels.js';
import { checkSupport } from './panels/notice.js';
import { Samples } from './panels/samples.js';
import { Setup } from './panels/setup.js';
import { installTheme } from './panels/theme.js';
import { sayPolicy } from './policy.js';
import { Run } from './run.js';
import { useSoftwareDefaults } from './settings.js';

const charts = new Charts();
const figures = new Figures();
/** What the user asked for and could not be done is said, and the run goes on. */
const complain = (thrown: unknown): void => controls.say(thrown instanceof Error ? thrown.message : String(thrown));
const acting = (work: () => Promise<void>) => (): void => {
  work().catch(complain);
};

const controls: Controls = new Controls({
  start: acting(() => run.start()),
  pause: acting(() => run.togglePause()),
  one: acting(() => run.oneStep()),
  stop: acting(() => run.stop()),
  save: acting(() => run.save()),
  export: acting(() => run.export()),
  again: acting(() => run.again()),
});
const setup = new Setup((curve) => {
  if (controls.state === 'setup') charts.plan(curve);
});
const samples = new Samples(complain);
const kernels = new KernelPanel(complain);
const checkpoints: CheckpointPanel = new CheckpointPanel((info) => {
  run.resume(info).catch(complain);
}, complain);
const run: Run = new Run({ charts, controls, figures, kernels, samples, setup, checkpoints });

ignoreStrayDrops();
installTheme(() => charts.repaint());
const about = byId('about', HTMLDialogElement);
byId('about-open', HTMLButtonElement).addEventListener('click', () => {
  about.showModal();
  sayPolicy().catch(complain);
});
byId('build', HTMLElement).textContent = `Version ${VERSION}.`;

document.addEventListener('visibilitychange', () => {
  if (document.hidden) acting(() => run.rescue())();
  else charts.repaint();
});

async function begin(): Promise<void> {
  controls.show('setup');
  controls.enable('start', false);
  const { ok, adapter } = await checkSupport();
  if (!ok) {
    controls.say('Training is not possible in this browser; the reason stands above.');
    return;
  }
  if (adapter?.software === true) useSoftwareDefaults();
  controls.enable('start', true);
  controls.say(adapter?.software === true ? 'Ready, in software.' : `Ready: ${[adapter?.vendor, adapter?.architecture].filter(Boolean).join(' ') || 'a GPU is here'}.`);
  await checkpoints.refresh();
  await setup.show();
  if (new URLSearchParams(location.search).has('run')) await run.start();
}
begin().catch(complain);
