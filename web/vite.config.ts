import {defineConfig} from 'vite';

// Where `npm run dev` finds a running server.
const server = process.env.COTERIE_SERVER ?? 'http://127.0.0.1:8080';
const routes = ['/v1', '/props', '/cache', '/plan', '/health'];

export default defineConfig({
  esbuild: {jsx: 'automatic', jsxImportSource: 'preact'},
  build: {target: 'es2021', modulePreload: false, assetsInlineLimit: 0, chunkSizeWarningLimit: 400},
  server: {
    proxy: Object.fromEntries(
      // The server turns pages of other origins away: to it, the page comes from itself.
      routes.map((route) => [route, {target: server, changeOrigin: true, headers: {origin: server}}]),
    ),
  },
});
