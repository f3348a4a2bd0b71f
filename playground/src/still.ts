/** Whether people have asked for stillness. */
export const STILL = matchMedia("(prefers-reduced-motion: reduce)");
