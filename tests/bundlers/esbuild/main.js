import { show } from './program.js';

show();
