// What llama-server's own clients ask for.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {Server} from './server.mjs';

test('llama-server\'s own completion gives the same answer under its names, streamed or not', async () => {
  const server = await Server.start('--alias', 'demo', '-t', '1');
  const request = {prompt: 'A volcano', temperature: 0, cache_prompt: true, n_keep: 0};
  const {choices, usage} = await server.json('/v1/completions', {...request, max_tokens: 12});
  const whole = await server.json('/completion', {...request, n_predict: 12, return_tokens: true, n_probs: 2});
  assert.equal(whole.content, choices[0].text);
  assert.equal(whole.stop, true);
  assert.equal(whole.stop_type, 'limit');
  assert.equal(whole.stopping_word, '');
  assert.equal(whole.truncated, false);
  assert.equal(whole.tokens_predicted, 12);
  assert.equal(whole.tokens_evaluated, usage.prompt_tokens);
  assert.equal(whole.timings.predicted_n, 12);
  assert.ok(whole.prompt.endsWith('A volcano'));
  assert.equal(whole.generation_settings.n_predict, 12);
  assert.equal((await server.json('/detokenize', {tokens: whole.tokens})).content, whole.content);
  assert.deepEqual(whole.completion_probabilities.map(({id}) => id), whole.tokens);
  for (const {logprob, top_logprobs} of whole.completion_probabilities) {
    assert.equal(top_logprobs.length, 2);
    assert.equal(top_logprobs[0].logprob, logprob);
  }

  const streamed = await (await server.post('/completion', {...request, n_predict: 12, stream: true})).text();
  const events = streamed.trim().split('\n\n').map((line) => JSON.parse(line.replace(/^data: /, '')));
  assert.deepEqual(events.map(({stop}) => stop), [...Array(events.length - 1).fill(false), true]);
  assert.ok(events.length > 3);
  assert.equal(events.map(({content}) => content).join(''), whole.content);
  const {tokens_predicted: predicted, stop_type: type, model} = events.at(-1);
  assert.deepEqual([predicted, type, model], [12, 'limit', whole.model]);
  assert.deepEqual(whole.tokens.length, 12);
  assert.deepEqual(events[0].tokens, []);

  const {tokens} = await server.json('/tokenize', {content: 'A volcano', add_special: true});
  assert.equal((await server.json('/completion', {...request, prompt: tokens, n_predict: 12})).content, whole.content);
  const word = whole.content.trim().split(' ')[2];
  const cut = await server.json('/completion', {...request, n_predict: 12, stop: [word]});
  assert.deepEqual([cut.stop_type, cut.stopping_word, cut.content], ['word', word, whole.content.slice(0, whole.content.indexOf(word))]);
  const held = await server.json('/completion', {...request, n_predict: 12, grammar: 'root ::= "yes"'});
  assert.deepEqual([held.stop_type, held.content, held.tokens], ['eos', 'yes', []]);
  assert.equal((await server.post('/completion', {...request, prompt: ['A', 'B']})).status, 400);
  assert.equal(whole.model, 'demo');
  await server.stop();
});
