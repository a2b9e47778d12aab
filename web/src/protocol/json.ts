/** Types of JSON. */

/** A value of a JSON document. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
/** An object of a JSON document. */
export interface JsonObject {
  readonly [key: string]: Json;
}
