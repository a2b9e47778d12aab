/** What a dedicated worker has and the DOM library does not declare. */
declare class FileReaderSync {
  readAsArrayBuffer(blob: Blob): ArrayBuffer;
}
