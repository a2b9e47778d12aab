/** Features of a dedicated worker that the DOM library does not declare. */
declare class FileReaderSync {
  readAsArrayBuffer(blob: Blob): ArrayBuffer;
}
