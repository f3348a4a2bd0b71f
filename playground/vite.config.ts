import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig(({ mode }) => {
  const real = here("src/wasm/anabranch_playground.js");
  const fake = mode === "fake";
  if (!fake && !existsSync(real)) {
    throw new Error("src/wasm is empty: run `.ci/playground --build`, or `npm run build:fake`");
  }
  return {
    // Relative addresses: the folder works at any place of a web server.
    base: "./",
    resolve: {
      alias: {
        "@engine-wasm": fake ? here("test/fake-wasm.ts") : `${here("src/wasm/anabranch_playground_bg.wasm")}?url`,
        "@engine": fake ? here("test/fake.ts") : real,
      },
    },
    worker: { format: "es" },
    build: { target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  };
});
