// Uploads a file with the published tus client. Arguments: URL of the uploads, key, file, what to do, and for "resume" the URL of
// the upload. "break" stops after the first part and prints the URL of the upload; "whole" and "resume" print it at the end.
import { readFileSync } from "node:fs";
import { Upload } from "tus-js-client";

const [endpoint, key, path, what, known] = process.argv.slice(2);
const upload = new Upload(readFileSync(path), {
  endpoint,
  uploadUrl: known ?? null,
  chunkSize: 300_000,
  retryDelays: null,
  headers: { "X-API-Key": key, "X-User-ID": "alice" },
  metadata: { filename: "film.bin", filetype: "application/octet-stream" },
  onError: (error) => {
    console.error(String(error));
    process.exit(1);
  },
  onChunkComplete: async () => {
    if (what === "break") {
      await upload.abort();
      console.log(upload.url);
      process.exit(0);
    }
  },
  onSuccess: () => console.log(upload.url),
});
upload.start();
