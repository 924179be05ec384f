import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {Server, sleep, until} from '../../../tests/clients/server.mjs';
import {ask, button, limitAnswers, Visit} from './visit.mjs';

let server;
let visit;
before(async () => {
  // A context that an endless answer does not fill before somebody on a busy machine can stop it.
  const endless = ['--ignore-eos', '-c', '16384'];
  server = await Server.start('--fake-gpu', '2x4M@10G/s', '--expert-cache', '28', '--cache-profile', 'off', '-t', '1', ...endless);
  visit = await Visit.begin(server);
});
after(async () => {
  await visit?.end();
  await server?.stop();
});

const answer = (page) => page.locator('.message.assistant').last();
const running = async () => (await server.json('/cache')).work.running;

test('an answer is written piece by piece, and stops when told', async () => {
  const page = await visit.page();
  await page.fill('#prompt', 'What is a volcano?');
  await page.keyboard.press('Enter');
  const lengths = new Set();
  await until(async () => {
    lengths.add((await answer(page).locator('.prose').allTextContents()).join('').length);
    return lengths.size >= 4;
  });
  assert.deepEqual([...lengths], [...lengths].sort((a, b) => a - b));
  await button(page, 'Stop').click();
  await page.getByText('Stopped.', {exact: true}).waitFor();
  await until(async () => (await running()) === 0);
  const text = await answer(page).locator('.prose').textContent();
  await sleep(300);
  assert.equal(await answer(page).locator('.prose').textContent(), text);

  await button(page, 'Go on from here').click();
  await until(async () => (await answer(page).locator('.prose').textContent()).length > text.length);
  await page.keyboard.press('Escape');
  await button(page, 'Send').waitFor();
  assert.ok((await answer(page).locator('.prose').textContent()).startsWith(text.slice(0, 20)));
  await visit.leave(page);
});

test('edits and new answers are branches that outlive a reload', async () => {
  const page = await visit.page();
  await limitAnswers(page, 12);
  await ask(page, 'What is a river?');
  await page.getByText('Cut off at').waitFor();
  const first = await answer(page).locator('.prose').textContent();
  await button(page, 'Another answer').click();
  await page.getByText('2/2').waitFor();
  await button(page, 'Edit').first().click();
  await page.getByLabel('Edit the message').fill('What is a lake?');
  await button(page, 'Send as a new version').click();
  await page.locator('.words', {hasText: 'What is a lake?'}).waitFor();
  await answer(page).locator('.actions').waitFor();
  await sleep(600); // until it is kept
  await page.reload();
  await page.locator('.words', {hasText: 'What is a lake?'}).waitFor();
  await button(page, 'The version before').first().click();
  await page.locator('.words', {hasText: 'What is a river?'}).waitFor();
  await button(page, 'The version before').last().click();
  await until(async () => (await answer(page).locator('.prose').textContent()) === first);
  await visit.leave(page);
});

test('conversations stand side by side; a deleted one comes back', async () => {
  const page = await visit.page();
  await limitAnswers(page, 5);
  await ask(page, 'What is gold?');
  await button(page, 'New chat').click();
  await ask(page, 'What is iron?');
  const list = page.getByRole('list', {name: 'Conversations'});
  assert.deepEqual(await list.locator('.title span').allTextContents(), ['What is iron?', 'What is gold?']);
  await button(page, 'Delete: What is iron?').click();
  assert.equal(await page.locator('.message').count(), 0);
  await button(page, 'Undo').click();
  await button(page, /^What is iron/).click();
  assert.equal(await page.locator('.words').textContent(), 'What is iron?');
  await visit.leave(page);
});

test('files are sent as text; what is no text is refused', async () => {
  const page = await visit.page();
  await limitAnswers(page, 3);
  const files = page.locator('input[type=file]');
  await files.setInputFiles({name: 'picture.png', mimeType: 'image/png', buffer: Buffer.from([0x89, 0x50, 0, 0xff])});
  await page.getByRole('alert').getByText('picture.png is not a text file').waitFor();
  await files.setInputFiles({name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('lava')});
  const sent = page.waitForRequest((request) => request.url().endsWith('/v1/chat/completions'));
  await page.getByRole('list', {name: 'Files to send'}).getByText('notes.txt').waitFor();
  await page.fill('#prompt', 'What is this?');
  await button(page, 'Send').click();
  const {messages, max_tokens} = (await sent).postDataJSON();
  assert.deepEqual(messages, [{role: 'user', content: 'notes.txt:\n```\nlava\n```\n\nWhat is this?'}]);
  assert.equal(max_tokens, 3);
  await answer(page).locator('.actions').waitFor();
  await visit.leave(page);
});

const hostile = `# Title
<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>
![picture](http://example.com/x.png) [bad](javascript:alert(1)) [good](https://example.com/)

\`\`\`python
print("hello")
\`\`\`

| a | b |
|---|--:|
| 1 | 2 |

3. three`;

test('an answer is shown as Markdown, and can neither load nor run anything', async () => {
  const page = await visit.page();
  await limitAnswers(page, 3);
  await ask(page, 'Hello');
  await answer(page).getByRole('button', {name: 'Edit'}).click();
  await page.getByLabel('Edit the message').fill(hostile);
  await button(page, 'Keep as a new version').click();
  const prose = answer(page).locator('.prose');
  await prose.locator('h1').waitFor();
  assert.equal(await prose.locator('img, script, iframe, [onerror], [style]').count(), 0);
  assert.equal(await prose.locator('a[href^=javascript]').count(), 0);
  assert.match(await prose.textContent(), /<img src=x onerror=.*<script>/);
  assert.equal(await prose.locator('a', {hasText: 'good'}).getAttribute('rel'), 'noopener noreferrer nofollow');
  assert.equal(await prose.locator('.hljs-string').textContent(), '"hello"');
  assert.equal(await prose.locator('td').last().evaluate((cell) => getComputedStyle(cell).textAlign), 'right');
  assert.equal(await prose.locator('ol').getAttribute('start'), '3');
  assert.equal(await prose.locator('pre').getAttribute('tabindex'), '0');
  assert.equal(await page.title(), 'coterie');
  await prose.getByRole('button', {name: 'Copy'}).click();
  await prose.getByText('Copied').waitFor();
  await visit.leave(page);
});

test('thoughts are folded and not sent again; a stream that breaks off keeps what came', async () => {
  const page = await visit.page();
  const chunk = (delta) => `data: ${JSON.stringify({choices: [{index: 0, delta, finish_reason: null}]})}\n\n`;
  const streams = [
    chunk({reasoning_content: 'Lava is hot.'}) + chunk({content: 'A **hot** hill.'}) + 'data: [DONE]\n\n',
    chunk({content: 'It is'}),
  ];
  const asked = [];
  await page.route('**/v1/chat/completions', (route) => {
    asked.push(route.request().postDataJSON());
    return route.fulfill({contentType: 'text/event-stream', body: streams[asked.length - 1]});
  });
  await ask(page, 'What is a volcano?');
  assert.equal(await answer(page).locator('strong').textContent(), 'hot');
  const thoughts = answer(page).getByText('Lava is hot.');
  assert.equal(await thoughts.isVisible(), false);
  await answer(page).getByText('Thoughts', {exact: true}).click();
  assert.equal(await thoughts.isVisible(), true);

  await ask(page, 'And why?');
  await page.getByRole('alert').getByText('The connection broke off.').waitFor();
  assert.equal((await answer(page).locator('.prose').textContent()).trim(), 'It is');
  const told = asked[1].messages.map(({role, content}) => `${role}: ${content}`);
  assert.deepEqual(told, ['user: What is a volcano?', 'assistant: A **hot** hill.', 'user: And why?']);
  await visit.leave(page);
});

test('the page can be used with the keyboard alone', async () => {
  const page = await visit.page();
  const focused = () =>
    page.evaluate(() => {
      const element = document.activeElement;
      const style = getComputedStyle(element);
      const name = element.getAttribute('aria-label') ?? element.labels?.[0]?.textContent ?? element.textContent;
      return {id: element.id, name: name.trim(), seen: style.outlineStyle !== 'none' || element.id === 'prompt'};
    });
  await page.keyboard.type('What is a tree?');
  await page.keyboard.press('Enter');
  await until(async () => (await answer(page).locator('.prose').count()) === 1);
  await page.keyboard.press('Escape');
  await page.getByText('Stopped.', {exact: true}).waitFor();

  const stops = [];
  for (let i = 0; i < 40 && !(stops.length > 1 && stops.at(-1).id === 'prompt'); ++i) {
    await page.keyboard.press('Tab');
    stops.push(await focused());
  }
  const names = stops.map(({name}) => name);
  const nameless = stops.filter(({name, seen}) => name === '' || !seen);
  assert.deepEqual(nameless.filter(({id}) => id !== ''), []);
  for (const name of ['Skip to the content', 'Chat', 'Cache', 'Plan', 'New chat', 'Settings', 'Another answer', 'Go on from here']) {
    assert.ok(names.includes(name), `${name} is not reached: ${names.join(', ')}`);
  }
  await page.getByRole('link', {name: 'Cache'}).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('application').focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowDown');
  await page.getByText(/^Layer 2, expert 0: /).waitFor();
  await visit.leave(page);
});
