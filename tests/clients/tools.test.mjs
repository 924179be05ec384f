import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import OpenAI from 'openai';
import {Server, toolTemplate} from './server.mjs';

let server;
let client;
const tool = (name, properties) => ({
  type: 'function',
  function: {name, description: name, parameters: {type: 'object', properties, required: Object.keys(properties), additionalProperties: false}},
});
const strict = (one) => ({...one, function: {...one.function, strict: true}});
const tools = [tool('weather', {city: {enum: ['Oslo', 'Rome']}, days: {type: 'integer', minimum: 1, maximum: 9}}), tool('clock', {})];
const ask = {model: 'demo', temperature: 0, max_tokens: 150, tools, messages: [{role: 'user', content: 'Weather?'}],
  chat_template_kwargs: {enable_thinking: false}};

before(async () => {
  server = await Server.start('--alias', 'demo', '--chat-template-file', toolTemplate, '-t', '1');
  client = new OpenAI({baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0});
});
after(() => server.stop());

function checkWeather(call) {
  assert.equal(call.function.name, 'weather');
  const {city, days} = JSON.parse(call.function.arguments);
  assert.ok(['Oslo', 'Rome'].includes(city));
  assert.ok(Number.isInteger(days) && days >= 1 && days <= 9);
}

test('a required call is well-formed', async () => {
  const answer = await client.chat.completions.create({...ask, tool_choice: 'required', parallel_tool_calls: false});
  const {message, finish_reason: finish} = answer.choices[0];
  assert.equal(finish, 'tool_calls');
  assert.equal(message.tool_calls.length, 1);
  assert.ok(['weather', 'clock'].includes(message.tool_calls[0].function.name));
  JSON.parse(message.tool_calls[0].function.arguments);
});

test('a named call is that one, streamed and whole', async () => {
  const named = {...ask, tool_choice: {type: 'function', function: {name: 'weather'}}, parallel_tool_calls: false};
  const {message} = (await client.chat.completions.create(named)).choices[0];
  assert.equal(message.content ?? '', '');
  const whole = message.tool_calls[0];
  checkWeather(whole);
  const streamed = {function: {name: '', arguments: ''}};
  let pieces = 0;
  let content = '';
  for await (const chunk of await client.chat.completions.create({...named, stream: true})) {
    const delta = chunk.choices[0].delta;
    content += delta.content ?? '';
    for (const call of delta.tool_calls ?? []) {
      streamed.id = call.id ?? streamed.id;
      streamed.function.name += call.function.name ?? '';
      streamed.function.arguments += call.function.arguments ?? '';
      ++pieces;
    }
  }
  assert.equal(streamed.function.arguments, whole.function.arguments);
  assert.equal(streamed.function.name, 'weather');
  assert.ok(streamed.id && pieces > 2);
  assert.equal(content, '');
});

test('a call and its result go back in', async () => {
  const answer = await client.chat.completions.create({...ask, tool_choice: 'required', parallel_tool_calls: false});
  const {message} = answer.choices[0];
  const next = await client.chat.completions.create({
    ...ask, max_tokens: 5, tool_choice: 'none',
    messages: [...ask.messages, message, {role: 'tool', tool_call_id: message.tool_calls[0].id, content: 'Rain.'}],
  });
  assert.equal(next.choices[0].message.tool_calls, undefined);
});

test('tools of the Responses API', async () => {
  const response = await client.responses.create({
    model: 'demo', input: 'Weather?', temperature: 0, max_output_tokens: 150, parallel_tool_calls: false,
    tools: tools.map((one) => ({type: 'function', ...one.function, strict: true})), tool_choice: {type: 'function', name: 'weather'},
  });
  const call = response.output.find((item) => item.type === 'function_call');
  checkWeather({function: call});
  const kinds = new Set();
  for await (const event of await client.responses.create({
    model: 'demo', input: [{role: 'user', content: 'Weather?'}, call, {type: 'function_call_output', call_id: call.call_id, output: 'Rain.'}],
    max_output_tokens: 5, stream: true, tools: tools.map((one) => ({type: 'function', ...one.function})), tool_choice: 'none',
  })) kinds.add(event.type);
  assert.ok(kinds.has('response.completed') || kinds.has('response.incomplete'));
});

test('a tool that is not there, or cannot be expressed, is refused', async () => {
  for (const extra of [
    {tool_choice: {type: 'function', function: {name: 'nothing'}}},
    {tools: [strict(tool('bad', {x: {type: 'string', pattern: '(?<=a)b'}}))]},
    {tools: [tool('twice', {}), tool('twice', {})]},
    {tools: [{type: 'function'}]},
  ]) {
    await assert.rejects(client.chat.completions.create({...ask, ...extra}), OpenAI.BadRequestError);
  }
});
