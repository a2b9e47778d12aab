/** Entry point of the module worker. */
import { serve } from './serve.js';

serve(globalThis);
