// Several people at once: nobody reads another's text, nobody starves, and memory stays where it is.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';
import {Server} from './server.mjs';

const seconds = Number(process.env.COTERIE_CROWD_SECONDS ?? 20);
const words = ['volcano', 'river', 'bridge', 'music', 'winter', 'garden', 'letter', 'copper'];
const codes = ['QUARTZ7', 'MAPLE3', 'FJORD9', 'TANGO5', 'ONYX2', 'CEDAR8', 'DELTA4', 'RAVEN6'];
const ask = (i) => ({
  messages: [{role: 'user', content: `What is a ${words[i]}? My code word is ${codes[i]}.`}],
  temperature: 0, max_tokens: 60, stream: true,
});

function residentMebibytes(process) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${process.pid}/status`, 'utf8'))[1]) / 1024;
}

/** The text of a streamed answer, and the longest wait between two pieces of it. */
async function answer(server, request) {
  const response = await server.post('/v1/chat/completions', request);
  assert.equal(response.status, 200);
  let text = '';
  let longest = 0;
  let last;
  let rest = '';
  for await (const bytes of response.body.pipeThrough(new TextDecoderStream())) {
    const now = performance.now();
    if (last !== undefined) longest = Math.max(longest, now - last);
    last = now;
    const lines = (rest + bytes).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith('data: {')) continue;
      text += JSON.parse(line.slice(6)).choices[0]?.delta.content ?? '';
    }
  }
  return {text, longest};
}

test(`eight clients for ${seconds} s get what each would get alone`, async () => {
  const server = await Server.start('-np', '4', '-t', '1', '-c', '2048');
  const alone = [];
  for (let i = 0; i < 8; ++i) alone.push((await answer(server, ask(i))).text);

  const end = Date.now() + 1000 * seconds;
  const answers = Array(8).fill(0);
  let longest = 0;
  const client = async (i) => {
    while (Date.now() < end) {
      const {text, longest: wait} = await answer(server, ask(i));
      assert.equal(text, alone[i]);
      for (const [j, code] of codes.entries()) assert.ok(j === i || !text.includes(code));
      longest = Math.max(longest, wait);
      ++answers[i];
    }
  };
  const warm = new Promise((done) => setTimeout(() => done(residentMebibytes(server.process)), 500 * seconds));
  await Promise.all(words.map((_, i) => client(i)));
  const grown = residentMebibytes(server.process) - (await warm);
  assert.ok(grown < 16, `grew by ${grown} MiB in the second half`);
  assert.ok(Math.min(...answers) * 2 >= Math.max(...answers), `answers per client: ${answers}`);
  assert.ok(longest < 2000, `somebody waited ${longest} ms for a token`);
  console.log(`${answers.reduce((a, b) => a + b)} answers, longest wait ${longest.toFixed(0)} ms, memory ${grown.toFixed(1)} MiB`);
  assert.equal(await server.stop(), 0);
});

test('a prefix of 400 tokens that ten requests share is read once', async () => {
  const server = await Server.start('-np', '10', '-t', '1', '-c', '8192');
  const {tokens} = await server.json('/tokenize', {content: 'The volcano and the river. '.repeat(200)});
  const shared = tokens.slice(0, 400);
  const results = await Promise.all(Array.from({length: 10}, (_, i) =>
    server.json('/v1/completions', {prompt: [...shared, 40 + i, 41, 42, 43], max_tokens: 3, temperature: 0})));
  const read = results.reduce((sum, result) => sum + result.timings.prompt_n, 0);
  assert.equal(read, 400 + 10 * 4);
  assert.equal((await server.json('/cache')).work.prompt_tokens, read);
  await server.stop();
});

test('answers that want more memory than there is together all end', async () => {
  const server = await Server.start('-np', '4', '-t', '1', '-c', '512');
  const long = (i) => ({prompt: `${words[i]} `.repeat(40), max_tokens: 300, temperature: 0, ignore_eos: true});
  const alone = [];
  for (let i = 0; i < 4; ++i) alone.push((await server.json('/v1/completions', {...long(i), cache_prompt: false})).choices[0].text);
  const together = await Promise.all([0, 1, 2, 3].map((i) => server.json('/v1/completions', long(i))));
  assert.deepEqual(together.map((result) => result.choices[0].text), alone);
  await server.stop();
});
