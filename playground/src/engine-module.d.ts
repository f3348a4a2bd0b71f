// The build decides what this is: the engine in WebAssembly, or the stand-in of the tests (vite.config.ts).
declare module "@engine" {
  export default function init(): Promise<unknown>;
}
