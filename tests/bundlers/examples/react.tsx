import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { Training } from './examples/react/Training';

const page = '/browser/asking-page.mjs';
const { talking } = await import(/* @vite-ignore */ page);
const trials = '/browser/examples-page.mjs';
const { chats } = await import(/* @vite-ignore */ trials);
const [files, data] = [await talking(), chats(100)];
const root = createRoot(document.querySelector('#root')!);
root.render(
  <StrictMode>
    <Training files={files} data={data} />
  </StrictMode>,
);
Object.assign(globalThis, { leave: () => root.unmount() });
