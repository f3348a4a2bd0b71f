// The build decides what this is: the engine in WebAssembly, or the stand-in of the tests (vite.config.ts).
declare module "@engine" {
  export default function init(from: { module_or_path: URL }): Promise<unknown>;
}

declare module "@engine-wasm" {
  /** The address of the WebAssembly, relative to the worker. */
  const address: string;
  export default address;
}
