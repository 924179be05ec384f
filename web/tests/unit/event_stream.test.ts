import assert from 'node:assert/strict';
import {test} from 'node:test';
import {EventStream} from '../../src/api/event_stream';

const stream = ': waiting\n\ndata: {"a":1}\n\ndata:two\r\ndata: lines\r\n\r\nevent: x\ndata:\n\n\ndata: [DONE]\n\n';
const events = ['{"a":1}', 'two\nlines', '', '[DONE]'];

test('a stream gives the same events wherever it is cut', () => {
  for (let first = 0; first <= stream.length; ++first) {
    for (let second = first; second <= stream.length; second += 7) {
      const parser = new EventStream();
      const parts = [stream.slice(0, first), stream.slice(first, second), stream.slice(second)];
      assert.deepEqual(parts.flatMap((part) => parser.push(part)), events, `cut at ${first} and ${second}`);
    }
  }
});

test('an event that is not complete is not told', () => {
  assert.deepEqual(new EventStream().push('data: half\n'), []);
});
