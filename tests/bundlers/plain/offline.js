import { show } from './program.js';

const { serviceWorker } = navigator;
const controlled = new Promise((resolve) =>
  serviceWorker.addEventListener('controllerchange', resolve, { once: true }),
);
await serviceWorker.register('./service-worker.js');
if (!serviceWorker.controller) await controlled;
await show();
