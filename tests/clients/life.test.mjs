// Starting, ending, and clients that mean no good.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync} from 'node:fs';
import {connect} from 'node:net';
import {tmpdir} from 'node:os';
import {test} from 'node:test';
import {program, Server, sleep, until} from './server.mjs';

const fails = (...flags) => {
  const result = spawnSync(program, ['serve', '--port', '0', ...flags], {encoding: 'utf8', timeout: 20_000});
  assert.notEqual(result.status, 0);
  assert.equal(result.signal, null);
  return result.stderr.trim().split('\n').at(-1);
};

/** Sends raw bytes and gives all that comes back until the server closes. */
function raw(server, ...pieces) {
  const {hostname, port} = new URL(server.url);
  return new Promise((done, failed) => {
    const socket = connect(port, hostname);
    let text = '';
    socket.on('data', (bytes) => (text += bytes)).on('close', () => done(text)).on('error', failed);
    socket.setTimeout(20_000, () => failed(new Error(`the server keeps the connection open: ${text}`)));
    (async () => {
      for (const piece of pieces) {
        if (typeof piece === 'number') await sleep(piece);
        else socket.write(piece);
      }
    })();
  });
}

test('an address that others reach needs a key, or a flag that says it is meant', async () => {
  assert.match(fails('--host', '0.0.0.0'), /--api-key/);
  const meant = await Server.start('--host', '0.0.0.0', '--no-key-needed', '-t', '1');
  assert.equal(await meant.stop(), 0);
});

test('flags that do not fit end in one line', () => {
  assert.match(fails('--api-key-file', '/nonexistent'), /\/nonexistent/);
  assert.match(fails('--ssl-cert-file', '/nonexistent'), /--ssl-key-file/);
  assert.match(fails('--slot-save-path', '/nonexistent'), /\/nonexistent/);
  assert.match(fails('--pooling', 'max'), /mean or last/);
  assert.match(fails('-m', '/nonexistent.gguf'), /nonexistent\.gguf/);
});

test('a second server does not get the same port', async () => {
  const first = await Server.start('-t', '1');
  const {port} = new URL(first.url);
  const result = spawnSync(program, ['serve', '--port', port], {encoding: 'utf8', timeout: 20_000});
  assert.match(result.stderr, new RegExp(`:${port}`));
  assert.notEqual(result.status, 0);
  await first.stop();
});

test('SIGTERM lets a running answer finish, and new ones are turned away', async () => {
  const server = await Server.start('-t', '1', '-c', '512');
  const running = server.json('/v1/completions', {prompt: 'A', max_tokens: 490, temperature: 0, ignore_eos: true});
  await until(async () => (await server.json('/cache')).work.running === 1);
  server.process.kill('SIGTERM');
  await until(async () => (await server.get('/health')).status === 503, 2000).catch(() => {});
  const answer = await running;
  assert.equal(answer.usage.completion_tokens, 490);
  const [status] = await server.ended;
  assert.equal(status, 0);
});

test('a request whose time is over before its answer begins is an error on every route', async () => {
  const server = await Server.start('-t', '1', '-c', '65536', '--request-timeout', '1');
  const tokens = Array.from({length: 60_000}, (_, i) => i % 4000);  // takes many times as long
  const messages = [{role: 'user', content: 'volcano '.repeat(40_000)}];
  const cases = [
    ['/v1/completions', {prompt: tokens}], ['/v1/completions', {prompt: tokens, stream: true}], ['/v1/embeddings', {input: tokens}],
    ['/v1/chat/completions', {messages, stream: true}], ['/v1/messages', {messages, max_tokens: 5}],
  ];
  for (const [path, body] of cases) {
    const response = await server.post(path, {...body, cache_prompt: false});
    const text = await response.text();
    assert.equal(response.status, body.stream ? 200 : 503, `${path}: ${text}`);
    assert.match(text, /the time for this request was over/, path);
    if (path !== '/v1/messages') assert.match(text, /"code":"timeout"/, path);
    if (!body.stream) assert.ok(Number(response.headers.get('retry-after')) > 0);
  }
  await server.stop();
});

test('answers that take too long are cut off, and a second signal ends at once', async () => {
  const patient = await Server.start('-t', '1', '--drain-timeout', '0');
  const cut = patient.post('/v1/completions', {prompt: 'A', max_tokens: 490, temperature: 0, ignore_eos: true});
  await until(async () => (await patient.json('/cache')).work.running === 1);
  assert.equal(await patient.stop(), 0);
  await cut.then((response) => response.text()).catch(() => {});

  const hasty = await Server.start('-t', '1');
  const lost = hasty.post('/v1/completions', {prompt: 'A', max_tokens: 490, temperature: 0, ignore_eos: true}).catch(() => {});
  await until(async () => (await hasty.json('/cache')).work.running === 1);
  hasty.process.kill('SIGTERM');
  await sleep(150);
  hasty.process.kill('SIGTERM');
  const [status] = await hasty.ended;
  assert.ok(status === 130 || status === 0);
  await lost;
});

test('the profile of experts is saved at the end', async () => {
  const folder = mkdtempSync(`${tmpdir()}/coterie-`);
  const profile = `${folder}/profile`;
  const server = await Server.start('--fake-gpu', '8M@10G/s', '--expert-cache', '16', '--cache-profile', profile, '-t', '1');
  await server.json('/v1/completions', {prompt: 'A volcano', max_tokens: 30, temperature: 0});
  const {devices} = await server.json('/cache');
  assert.ok(devices[0].hits > 0 && devices[0].resident > 0);
  assert.equal(await server.stop(), 0);
  assert.ok(readFileSync(profile).length > 0);
  rmSync(folder, {recursive: true});
});

test('metrics tell of every device what was measured, and nothing else', async () => {
  const server = await Server.start('--fake-gpu', '4M@1G/s,4M@2G/s', '--expert-cache', '8', '--cache-profile', 'off', '--metrics', '-t', '1');
  await server.json('/v1/completions', {prompt: 'A volcano', max_tokens: 30, temperature: 0});
  const text = await (await server.get('/metrics')).text();
  const value = (name, device) => Number(new RegExp(`^${name}\\{device="${device}"\\} (\\S+)$`, 'm').exec(text)?.[1]);
  for (const device of [0, 1]) {
    assert.ok(value('coterie_device_hits_total', device) > 0);
    assert.ok(value('coterie_device_moved_bytes_total', device) > 0);
    assert.ok(value('coterie_device_evictions_total', device) >= 0);
    assert.equal(value('coterie_device_link_bytes_per_second', device), (device + 1) * 1e9);
    assert.ok(value('coterie_device_link_share', device) > 0);
  }
  assert.doesNotMatch(text, /handoff/);
  assert.equal(await server.stop(), 0);
});

test('drafts change no answer, and are counted', async () => {
  const request = {prompt: 'A volcano', grammar: 'root ::= (" fire and smoke" [a-z]){9}', max_tokens: 60, seed: 5};
  const plain = await Server.start('-t', '1');
  const without = await plain.json('/v1/completions', request);
  await plain.stop();
  const server = await Server.start('--spec-type', 'ngram-simple', '--draft-max', '8', '--metrics', '-t', '1');
  const {choices, timings} = await server.json('/v1/completions', request);
  assert.equal(choices[0].text, without.choices[0].text);
  assert.ok(!('draft_n' in without.timings));
  assert.ok(timings.draft_n_accepted > 0 && timings.draft_n_accepted <= timings.draft_n, JSON.stringify(timings));
  const text = await (await server.get('/metrics')).text();
  const value = (name) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
  assert.equal(value('coterie_draft_tokens_total'), timings.draft_n);
  assert.equal(value('coterie_draft_accepted_tokens_total'), timings.draft_n_accepted);
  assert.equal(await server.stop(), 0);
});

test('a slot is saved and comes back in another server, and nothing leaves its folder', async () => {
  const folder = mkdtempSync(`${tmpdir()}/coterie-`);
  const prompt = 'A volcano is a mountain '.repeat(8);
  const first = await Server.start('--slot-save-path', folder, '-t', '1', '-np', '2');
  await first.json('/v1/completions', {prompt, max_tokens: 2, temperature: 0, id_slot: 1});
  const saved = await first.json('/slots/1?action=save', {filename: 'chat.bin'});
  assert.ok(saved.n_saved > 30, JSON.stringify(saved));
  await first.stop();
  const second = await Server.start('--slot-save-path', folder, '-t', '1', '-np', '2');
  const restored = await second.json('/slots/0?action=restore', {filename: 'chat.bin'});
  assert.equal(restored.n_restored, saved.n_saved);
  const answer = await second.json('/v1/completions', {prompt: `${prompt}of`, max_tokens: 2, temperature: 0});
  assert.ok(answer.timings.cache_n > 30, JSON.stringify(answer.timings));
  writeFileSync(`${folder}/secret`, 'secret');
  symlinkSync(`${folder}/secret`, `${folder}/link.bin`);
  for (const filename of ['../chat.bin', '/etc/passwd', '', 'a'.repeat(300), 'link.bin', 'secret', '.', 'missing.bin']) {
    const response = await second.post('/slots/0?action=restore', {filename});
    assert.ok([400, 404].includes(response.status), `${filename}: ${response.status}`);
  }
  await second.json('/slots/0?action=save', {filename: 'link.bin'});
  assert.equal(readFileSync(`${folder}/secret`, 'utf8'), 'secret');
  assert.equal((await second.json('/slots/0?action=erase', {})).id_slot, 0);
  assert.equal((await second.post('/slots/9?action=erase', {})).status, 400);
  await second.stop();
  rmSync(folder, {recursive: true});
});

test('keys guard every route but health', async () => {
  const server = await Server.start('--api-key', 'secret', '--metrics', '-t', '1');
  for (const path of ['/v1/models', '/slots', '/props', '/metrics', '/cache', '/nonsense']) {
    assert.equal((await server.get(path)).status, 401, path);
    assert.equal((await server.get(path, {authorization: 'Bearer wrong'})).status, 401);
    assert.notEqual((await server.get(path, {authorization: 'Bearer secret'})).status, 401);
    assert.notEqual((await server.get(path, {'x-api-key': 'secret'})).status, 401);
  }
  assert.equal((await server.post('/v1/chat/completions', {})).status, 401);
  assert.equal((await server.get('/health')).status, 200);
  assert.equal((await server.get('/')).status, 200);
  assert.equal((await fetch(`${server.url}/v1/models`, {method: 'OPTIONS'})).status, 204);
  await server.stop();
});

test('a route tells the methods that it takes', async () => {
  const server = await Server.start('-t', '1');
  const cases = [['/v1/models', 'DELETE', ['GET', 'HEAD', 'OPTIONS']], ['/v1/completions', 'GET', ['OPTIONS', 'POST']], ['/v1/messages', 'PUT', ['OPTIONS', 'POST']]];
  for (const [path, method, allowed] of cases) {
    const response = await fetch(server.url + path, {method});
    assert.equal(response.status, 405, path);
    assert.deepEqual(response.headers.get('allow').split(', ').sort(), allowed);
    assert.ok((await response.json()).error.message.includes(method));
  }
  await server.stop();
});

test('hosts and origins of others are turned away', async () => {
  const server = await Server.start('--cors', 'https://app.example', '-t', '1');
  const head = (host, origin) => `GET /v1/models HTTP/1.1\r\nHost: ${host}\r\n${origin}Connection: close\r\n\r\n`;
  assert.match(await raw(server, head('evil.example', '')), /^HTTP\/1.1 403/);
  assert.match(await raw(server, head('localhost', 'Origin: https://evil.example\r\n')), /^HTTP\/1.1 403/);
  const allowed = await raw(server, head('localhost', 'Origin: https://app.example\r\n'));
  assert.match(allowed, /^HTTP\/1.1 200/);
  assert.match(allowed, /Access-Control-Allow-Origin: https:\/\/app.example/);
  await server.stop();
});

test('pages of an allowed origin can send what clients send, and read every error', async () => {
  const server = await Server.start('--cors', 'https://app.example', '-t', '1', '--body-limit', '1');
  const origin = {origin: 'https://app.example'};
  const wanted = 'anthropic-beta,anthropic-dangerous-direct-browser-access,x-api-key,x-stainless-lang';
  const asks = await raw(server, `OPTIONS /v1/messages HTTP/1.1\r\nHost: localhost\r\nOrigin: ${origin.origin}\r\n` +
    `Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: ${wanted}\r\nConnection: close\r\n\r\n`);
  assert.match(asks, /^HTTP\/1.1 204/);
  for (const name of wanted.split(',')) assert.match(asks, new RegExp(`^Access-Control-Allow-Headers: .*${name}`, 'm'));
  const errors = [
    await server.get('/nonsense', origin), await server.post('/v1/completions', '{', origin),
    await server.post('/v1/completions', {prompt: 'x'.repeat(1 << 21)}, origin),
  ];
  assert.deepEqual(errors.map(({status}) => status), [404, 400, 413]);
  for (const {headers} of errors) {
    assert.equal(headers.get('access-control-allow-origin'), origin.origin);
    assert.match(headers.get('access-control-expose-headers'), /Retry-After/);
  }
  const refused = await raw(server, `POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nOrigin: ${origin.origin}\r\nContent-Length: x\r\n\r\n`);
  assert.match(refused, /^Access-Control-Allow-Origin: https:\/\/app.example/m);
  await server.stop();
});

test('headers without end, requests in requests and half requests get nowhere', async () => {
  const server = await Server.start('-t', '1', '--timeout', '1');
  const flood = await raw(server, 'GET /health HTTP/1.1\r\nHost: localhost\r\n', ...Array(40).fill(`x: ${'y'.repeat(4000)}\r\n`));
  assert.match(flood, /^HTTP\/1.1 431/);
  const nested = 'GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n';
  const smuggled = await raw(server, `POST /nonsense HTTP/1.1\r\nHost: evil.example\r\nContent-Length: ${nested.length}\r\n\r\n${nested}`);
  assert.equal(smuggled.match(/HTTP\/1.1/g).length, 1, smuggled);
  const half = await raw(server, 'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{');
  assert.doesNotMatch(half, /^HTTP\/1.1 200/);
  assert.equal((await server.get('/health')).status, 200);
  await server.stop();
});

test('a request without a length has no body, and one whose end is in doubt is turned away at once', async () => {
  const server = await Server.start('-t', '1');
  const post = (...lines) => raw(server, ['POST /v1/completions HTTP/1.1', 'Host: localhost', ...lines, '', ''].join('\r\n'));
  const answer = await post('Connection: close');
  assert.match(answer, /^HTTP\/1.1 400/);
  assert.doesNotMatch(answer, /in time/);
  const refused = {
    400: [['Content-Length: -1'], ['Content-Length: 99999999999999999999999'], ['Content-Length: 5x'], ['Content-Length: 2', 'Content-Length: 3'],
      ['Content-Length: 2', 'Transfer-Encoding: chunked']],
    501: [['Transfer-Encoding: gzip'], ['Transfer-Encoding: gzip, chunked']],
  };
  for (const [status, cases] of Object.entries(refused)) {
    for (const lines of cases) {
      const text = await post(...lines);  // the connection ends, though the client wants to keep it
      assert.match(text, new RegExp(`^HTTP/1.1 ${status}`), lines.join());
      assert.equal(text.match(/^Connection: close/gmi).length, 1, text);
      assert.doesNotMatch(text, /keep-alive/i, text);
      assert.ok(JSON.parse(text.split('\r\n\r\n')[1]).error.message.includes(lines.at(-1).split(':')[0]), text);
    }
  }
  const body = '{"prompt": "A", "max_tokens": 1}';
  const chunks = await post('Transfer-Encoding: chunked', '', body.length.toString(16), body, '0');
  assert.match(chunks, /^HTTP\/1.1 200/);
  assert.match(chunks, /^Connection: close/mi);
  await server.stop();
});

test('more connections than allowed are told so', async () => {
  const server = await Server.start('-t', '1', '--connections', '3');
  const {hostname, port} = new URL(server.url);
  const held = Array.from({length: 3}, () => connect(port, hostname));
  await Promise.all(held.map((socket) => new Promise((done) => socket.on('connect', done))));
  await sleep(100);
  assert.match(await raw(server), /^HTTP\/1.1 503/);
  for (const socket of held) socket.destroy();
  await until(async () => (await server.get('/health').catch(() => ({}))).status === 200, 5000);
  await server.stop();
});

test('TLS works with a certificate of one\'s own', async () => {
  const folder = mkdtempSync(`${tmpdir()}/coterie-`);
  const made = spawnSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2',
    '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1',
    '-keyout', `${folder}/key.pem`, '-out', `${folder}/cert.pem`]);
  assert.equal(made.status, 0, String(made.stderr));
  const server = await Server.start('--ssl-cert-file', `${folder}/cert.pem`, '--ssl-key-file', `${folder}/key.pem`, '-t', '1');
  assert.match(server.url, /^https:/);
  const script = `const r = await fetch('${server.url}/v1/completions', {method: 'POST', body: '{"prompt":"A","max_tokens":5}'});
    console.log(r.status, (await r.json()).usage.completion_tokens);`;
  const result = spawnSync(process.execPath, ['--input-type=module', '-e', script],
    {encoding: 'utf8', env: {...process.env, NODE_EXTRA_CA_CERTS: `${folder}/cert.pem`}});
  assert.equal(result.stdout, '200 5\n', result.stderr);
  await server.stop();
  rmSync(folder, {recursive: true});
});

test('a request is taken whole or not at all, however many parts it has', async () => {
  const server = await Server.start('-np', '2', '--queue', '3', '-t', '1');
  const texts = Array.from({length: 70}, (_, i) => `Number ${i}`);
  const {data} = await server.json('/v1/embeddings', {input: texts});
  assert.deepEqual(data.map(({index}) => index), texts.map((_, i) => i));
  const {choices} = await server.json('/v1/completions', {prompt: texts, max_tokens: 1, temperature: 0});
  assert.deepEqual(choices.map(({index}) => index), texts.map((_, i) => i));
  const chat = await server.json('/v1/chat/completions', {messages: [{role: 'user', content: 'Hello'}], n: 4, max_tokens: 1});
  assert.equal(chat.choices.length, 4);
  const tooMany = await server.post('/v1/completions', {prompt: texts, n: 32, max_tokens: 1});
  assert.equal(tooMany.status, 400);
  assert.equal((await tooMany.json()).error.param, 'n');
  await server.stop();
});

test('one client\'s full queue leaves room for others', async () => {
  const server = await Server.start('-np', '1', '--queue', '3', '-t', '1', '--api-key', 'a', '--api-key', 'b');
  const ask = (key, tokens) =>
    server.post('/v1/completions', {prompt: 'A', max_tokens: tokens, temperature: 0, ignore_eos: true}, {authorization: `Bearer ${key}`});
  const statuses = [];
  const greedy = Array.from({length: 5}, () => ask('a', 400).then((response) => statuses.push(response.status)));
  await until(() => statuses.includes(429));
  assert.equal((await ask('b', 1)).status, 200);
  await Promise.all(greedy);
  assert.ok(statuses.includes(200) && new Set(statuses).size === 2, String(statuses));
  await server.stop();
});

test('memory stays where it is over a thousand requests', async () => {
  const server = await Server.start('-t', '1', '-c', '1024');
  const resident = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.process.pid}/status`, 'utf8'))[1]);
  const some = async (from, count) => {
    for (let i = from; i < from + count; ++i) {
      await server.json('/v1/completions', {prompt: `Number ${i * 7919}`, max_tokens: 2, temperature: 0});
    }
  };
  await some(0, 300);
  const before = resident();
  await some(300, 700);
  assert.ok(resident() - before < 7000, `grew by ${resident() - before} KiB in 700 requests`);
  await server.stop();
});
