// The core as scripts in pages call it: with functions that only tests have, and with the fields of its reports, which `core.d.ts` leaves unknown.
declare const core: any;
export = core;
