import {readdirSync, readFileSync} from 'node:fs';
import {defineConfig, type Plugin} from 'vite';

// Where `npm run dev` finds a running server.
const server = process.env.COTERIE_SERVER ?? 'http://127.0.0.1:8080';
const routes = ['/v1', '/props', '/cache', '/plan', '/health'];

/** The licences of what the built page contains, which go where it goes. */
function licences(): Plugin {
  const {dependencies} = JSON.parse(readFileSync('package.json', 'utf8')) as {dependencies: Record<string, string>};
  const of = (name: string) => {
    const folder = `node_modules/${name}`;
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    if (!file) throw new Error(`${name} has no file with its licence`);
    return `${name} ${dependencies[name]}\n\n${readFileSync(`${folder}/${file}`, 'utf8').trim()}\n`;
  };
  return {
    name: 'licences',
    generateBundle() {
      const source = Object.keys(dependencies).map(of).join(`\n${'-'.repeat(80)}\n\n`);
      this.emitFile({type: 'asset', fileName: 'assets/licences.txt', source});
    },
  };
}

export default defineConfig({
  plugins: [licences()],
  esbuild: {jsx: 'automatic', jsxImportSource: 'preact'},
  build: {target: 'es2021', modulePreload: false, assetsInlineLimit: 0, chunkSizeWarningLimit: 400},
  server: {
    proxy: Object.fromEntries(
      // The server turns pages of other origins away: to it, the page comes from itself.
      routes.map((route) => [route, {target: server, changeOrigin: true, headers: {origin: server}}]),
    ),
  },
});
