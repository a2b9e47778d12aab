// A service worker as many apps have it: what was loaded once comes from the cache, and the network is asked for the rest.
const CACHE = 'app';
const SHELL = [
  './offline.html',
  './offline.js',
  './program.js',
  './node_modules/tabtune/dist/index.js',
];

addEventListener('install', (event) => {
  const filled = caches.open(CACHE).then((cache) => cache.addAll(SHELL));
  event.waitUntil(filled.then(() => skipWaiting()));
});
addEventListener('activate', (event) => event.waitUntil(clients.claim()));
addEventListener('fetch', (event) => event.respondWith(answer(event.request)));

async function answer(request) {
  const cache = await caches.open(CACHE);
  const kept = await cache.match(request);
  if (kept) return kept;
  const response = await fetch(request);
  if (response.ok && request.method === 'GET') await cache.put(request, response.clone());
  return response;
}
