// Starts and ends the server that the tests talk to.
import {spawn} from 'node:child_process';
import {once} from 'node:events';
import {createInterface} from 'node:readline';
import {after} from 'node:test';
import {fileURLToPath} from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
export const program = process.env.COTERIE_PROGRAM ?? `${root}build/release/coterie`;
export const toolTemplate = `${root}tests/data/chat/tools_and_thoughts.jinja`;

// A test that fails leaves its server behind, for which node would wait.
const started = [];
after(() => started.forEach((server) => server.kill('SIGKILL')));

/** A running server: `url`, `process`, and what it wrote to standard error. */
export class Server {
  static async start(...flags) {
    const server = new Server();
    server.process = spawn(program, ['serve', '--port', '0', ...flags], {stdio: ['ignore', 'pipe', 'pipe']});
    started.push(server.process);
    server.errors = '';
    server.process.stderr.on('data', (text) => (server.errors += text));
    server.ended = once(server.process, 'exit');
    const line = await Promise.race([once(createInterface(server.process.stdout), 'line'), server.ended]);
    const url = /at (https?:\S+)$/.exec(line[0]);
    if (!url) throw new Error(`the server did not start: ${server.errors}`);
    server.url = url[1];
    return server;
  }

  /** Asks it to end, and gives its exit status. */
  async stop(signal = 'SIGTERM') {
    this.process.kill(signal);
    const [status] = await this.ended;
    return status;
  }

  get(path, headers = {}) {
    return fetch(this.url + path, {headers});
  }
  post(path, body, headers = {}) {
    return fetch(this.url + path, {
      method: 'POST',
      headers: {'content-type': 'application/json', ...headers},
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  }
  async json(path, body) {
    const response = await (body === undefined ? this.get(path) : this.post(path, body));
    return response.json();
  }
}

export const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** Waits until `condition` holds; fails after `limit` milliseconds. */
export async function until(condition, limit = 10_000) {
  const end = Date.now() + limit;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`did not become true in ${limit} ms: ${condition}`);
    await sleep(20);
  }
}
