import assert from 'node:assert/strict';
import {test} from 'node:test';
import {add, asMarkdown, change, contentOf, kRoot, newConversation, newId, path, pathTo, requestMessages, siblings, switchBranch, type Message} from '../../src/chat/tree';

const message = (id: string, parent: string, role: Message['role'], text = id): Message => ({id, parent, role, text, created: 1, state: 'done'});
const ids = (messages: Message[]) => messages.map(({id}) => id).join(' ');

function sample() {
  const messages = [message('q1', kRoot, 'user'), message('a1', 'q1', 'assistant'), message('q2', 'a1', 'user'), message('a2', 'q2', 'assistant')];
  return messages.reduce(add, newConversation(0));
}

test('a new answer stands beside the old one, and each keeps what followed it', () => {
  const other = add(sample(), message('b1', 'q1', 'assistant'));
  assert.equal(ids(path(other)), 'q1 b1');
  assert.deepEqual(siblings(other, 'b1'), ['a1', 'b1']);
  assert.equal(ids(path(switchBranch(other, 'b1', -1))), 'q1 a1 q2 a2');
  assert.equal(switchBranch(other, 'b1', 1), other);
});

test('another first question begins a branch at the root', () => {
  const other = add(sample(), message('p1', kRoot, 'user'));
  assert.equal(ids(path(other)), 'p1');
  assert.equal(ids(pathTo(other, 'a2')), 'q1 a1 q2 a2');
  assert.equal(other.title, 'q1');
});

test('nothing that is given is changed', () => {
  const before = sample();
  const copy = structuredClone(before);
  add(before, message('x', 'a2', 'user'));
  change(before, 'a1', {text: 'other'});
  switchBranch(before, 'a1', 1);
  assert.deepEqual(before, copy);
});

test('versions stay in the order in which they were made', () => {
  let conversation = newConversation(0);
  const made = Array.from({length: 50}, newId);
  for (const id of made) conversation = add(conversation, message(id, kRoot, 'user'));
  assert.deepEqual(siblings(conversation, made[0]!), made);
  assert.equal(new Set(made).size, 50);
});

test('answers without a text are not sent, a system prompt is', () => {
  const messages = [message('q', kRoot, 'user'), message('a', 'q', 'assistant', '')];
  assert.deepEqual(requestMessages(messages, ' be brief '), [
    {role: 'system', content: ' be brief '},
    {role: 'user', content: 'q'},
  ]);
  assert.deepEqual(requestMessages(messages, '  '), [{role: 'user', content: 'q'}]);
});

test('a file cannot end the fence around it', () => {
  const sent = contentOf({...message('q', kRoot, 'user', 'Why?'), files: [{name: 'a.md', text: 'x\n````\ny\n'}]});
  assert.equal(sent, 'a.md:\n`````\nx\n````\ny\n`````\n\nWhy?');
});

test('a long first line becomes a short title', () => {
  const {title} = add(newConversation(0), message('q', kRoot, 'user', `${'word '.repeat(40)}\nmore`));
  assert.ok(title.length <= 60 && title.endsWith('…'), title);
  assert.match(asMarkdown(sample()), /^# q1\n\n## You\n\nq1\n\n## Answer\n\na1\n/);
});
