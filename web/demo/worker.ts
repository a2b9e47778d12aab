/** Where the built page has its worker: Vite gives the address. */
import workerUrl from 'tabtune/worker?worker&url';

export { workerUrl };
