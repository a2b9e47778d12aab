import { mount, unmount } from 'svelte';
import Training from './examples/svelte/Training.svelte';

const page = '/browser/asking-page.mjs';
const { talking } = await import(/* @vite-ignore */ page);
const trials = '/browser/examples-page.mjs';
const { chats } = await import(/* @vite-ignore */ trials);
const props = { files: await talking(), data: chats(100) };
const component = mount(Training, { target: document.querySelector('#root')!, props });
Object.assign(globalThis, { leave: () => unmount(component) });
