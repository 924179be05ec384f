// Bundles the unit tests for Node and runs them.
import {build} from 'esbuild';
import {spawnSync} from 'node:child_process';
import {readdirSync} from 'node:fs';
import {fileURLToPath} from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const outdir = `${here}../node_modules/.unit`;
const names = readdirSync(`${here}unit`).filter((name) => name.endsWith('.test.ts'));
await build({
  entryPoints: names.map((name) => `${here}unit/${name}`),
  outdir,
  outExtension: {'.js': '.mjs'},
  bundle: true,
  platform: 'node',
  format: 'esm',
  // Node 18 has what browsers call `crypto` under another name.
  banner: {js: "import {webcrypto} from 'node:crypto'; globalThis.crypto ??= webcrypto;"},
  logLevel: 'error',
});
const files = names.map((name) => `${outdir}/${name.replace(/\.ts$/, '.mjs')}`);
process.exitCode = spawnSync(process.execPath, ['--test', ...files], {stdio: 'inherit'}).status ?? 1;
