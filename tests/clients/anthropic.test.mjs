import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import {Server, toolTemplate} from './server.mjs';

let server;
let client;
const request = {model: 'demo', max_tokens: 40, temperature: 0, messages: [{role: 'user', content: 'What is a volcano?'}]};

before(async () => {
  server = await Server.start('--alias', 'demo', '--api-key', 'first', '--api-key', 'second', '-t', '1');
  client = new Anthropic({baseURL: server.url, apiKey: 'second', maxRetries: 0});
});
after(() => server.stop());

test('a message is answered', async () => {
  const message = await client.messages.create(request);
  assert.equal(message.type, 'message');
  assert.match(message.content[0].text, /^volcano has/);
  assert.equal(message.stop_reason, 'max_tokens');
  assert.equal(message.usage.output_tokens, 40);
});

test('a stream says the same as a whole message', async () => {
  const whole = await client.messages.create(request);
  const kinds = [];
  const stream = client.messages.stream(request);
  stream.on('streamEvent', (event) => kinds.at(-1) === event.type || kinds.push(event.type));
  const message = await stream.finalMessage();
  assert.deepEqual(message.content, whole.content);
  assert.equal(message.stop_reason, whole.stop_reason);
  assert.equal(message.usage.output_tokens, 40);
  assert.deepEqual(kinds, ['message_start', 'content_block_start', 'content_block_delta', 'content_block_stop',
    'message_delta', 'message_stop']);
});

test('a second turn reads only what it adds', async () => {
  const first = await client.messages.create(request);
  const second = await client.messages.create({
    ...request,
    messages: [...request.messages, {role: 'assistant', content: first.content}, {role: 'user', content: 'What is lava?'}],
  });
  assert.ok(second.usage.cache_read_input_tokens >= 40, JSON.stringify(second.usage));
  assert.ok(second.usage.input_tokens < 40, JSON.stringify(second.usage));
});

test('tokens are counted without answering', async () => {
  const {input_tokens: count} = await client.messages.countTokens({model: 'demo', messages: request.messages});
  const message = await client.messages.create({...request, max_tokens: 1});
  assert.equal(count, message.usage.input_tokens + message.usage.cache_read_input_tokens);
});

test('a stop sequence ends the message and is named', async () => {
  const message = await client.messages.create({...request, max_tokens: 200, stop_sequences: ['common', 'nowhere']});
  assert.equal(message.stop_reason, 'stop_sequence');
  assert.equal(message.stop_sequence, 'common');
  assert.ok(!message.content[0].text.includes('common'));
});

test('an answer that was begun goes on from there', async () => {
  const message = await client.messages.create({
    ...request, messages: [...request.messages, {role: 'assistant', content: 'volcano has 2'}],
  });
  assert.match(message.content[0].text, /^\s*common meanings/);
});

test('errors have the shape that the client knows', async () => {
  await assert.rejects(client.messages.create({...request, max_tokens: undefined}), Anthropic.BadRequestError);
  await assert.rejects(client.messages.create({...request, messages: [{role: 'user', content: [{type: 'image', source: {}}]}]}),
    (error) => error instanceof Anthropic.BadRequestError && error.message.includes('messages[0].content[0]'));
  const stranger = new Anthropic({baseURL: server.url, apiKey: 'wrong', maxRetries: 0});
  await assert.rejects(stranger.messages.create(request), (error) => {
    assert.ok(error instanceof Anthropic.AuthenticationError);
    assert.equal(error.error.error.type, 'authentication_error');
    return true;
  });
});

test('tools are called, and their results come back in', async () => {
  const own = await Server.start('--alias', 'demo', '--chat-template-file', toolTemplate, '-t', '1');
  const tools = [{name: 'weather', description: 'w', input_schema: {type: 'object',
    properties: {city: {enum: ['Oslo', 'Rome']}}, required: ['city'], additionalProperties: false}}];
  const caller = new Anthropic({baseURL: own.url, apiKey: 'none', maxRetries: 0});
  const ask = {model: 'demo', max_tokens: 120, temperature: 0, tools, thinking: {type: 'disabled'},
    messages: [{role: 'user', content: 'Weather?'}]};
  const message = await caller.messages.create({...ask, tool_choice: {type: 'tool', name: 'weather'}});
  const call = message.content.find((block) => block.type === 'tool_use');
  assert.equal(message.stop_reason, 'tool_use');
  assert.ok(['Oslo', 'Rome'].includes(call.input.city), JSON.stringify(call));
  const streamed = await caller.messages.stream({...ask, tool_choice: {type: 'tool', name: 'weather'}}).finalMessage();
  assert.deepEqual(streamed.content.find((block) => block.type === 'tool_use').input, call.input);
  const after = await caller.messages.create({
    ...ask, max_tokens: 5,
    messages: [...ask.messages, {role: 'assistant', content: message.content},
      {role: 'user', content: [{type: 'tool_result', tool_use_id: call.id, content: 'Rain.'}]}],
  });
  assert.equal(after.type, 'message');
  await own.stop();
});
