// The stand-in has no WebAssembly.
export default "";
