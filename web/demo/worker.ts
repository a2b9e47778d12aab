/** Address of the worker in the built page, which Vite provides. */
import workerUrl from 'tabtune/worker?worker&url';

export { workerUrl };
