import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {Server, sleep, until} from '../../../tests/clients/server.mjs';
import {Visit} from './visit.mjs';

let server;
let visit;
before(async () => {
  server = await Server.start('--fake-gpu', '2x4M@10G/s', '--expert-cache', '28', '--cache-profile', 'off', '-t', '1');
  visit = await Visit.begin(server);
});
after(async () => {
  await visit?.end();
  await server?.stop();
});

const picture = (page) => page.locator('.heat canvas').evaluate((canvas) => canvas.toDataURL());
const value = (page, title) => page.locator('.curve', {hasText: title}).locator('.value').textContent();

test('the heat map moves while an answer is written, and only then', async () => {
  const page = await visit.page({at: '#cache'});
  await page.locator('.heat canvas').waitFor();
  await sleep(500);
  const idle = await picture(page);
  await sleep(2200); // two looks
  assert.equal(await picture(page), idle);
  assert.equal(await value(page, 'Hit rate'), 'idle');

  const written = server.post('/v1/completions', {prompt: 'A volcano is', max_tokens: 400, ignore_eos: true});
  const pictures = new Set([idle]);
  const told = new Set();
  await until(async () => {
    pictures.add(await picture(page));
    told.add(await value(page, 'Hit rate'));
    return pictures.size >= 3 && [...told].some((text) => /^\d+ %$/.test(text));
  });
  assert.notEqual(await value(page, 'Tokens written'), '0/s');
  assert.match(await value(page, 'Over the links'), /[kM]B\/s of 20 GB\/s/);
  assert.equal((await written).status, 200);
  await visit.leave(page);
});

test('figures of the cache are those of the server', async () => {
  const page = await visit.page({at: '#cache'});
  const row = page.locator('tr', {hasText: 'GPU 0'});
  await row.waitFor();
  const [device] = (await server.json('/cache')).devices;
  const number = (text) => Number(text.replaceAll(',', ''));
  assert.equal(number(await row.locator('td').nth(0).textContent()), device.resident);
  assert.equal(number(await row.locator('td').nth(1).textContent()), device.hits);
  await visit.leave(page);
});

test('the plan tells what each memory holds', async () => {
  const page = await visit.page({at: '#plan'});
  const plan = await server.json('/plan');
  assert.equal(plan.devices.length, 2);
  for (const {capacity_bytes, dense_bytes, kv_bytes, workspace_bytes, expert_bytes} of [...plan.devices, plan.ram]) {
    assert.ok(expert_bytes > 0);
    assert.ok(dense_bytes + kv_bytes + workspace_bytes + expert_bytes <= capacity_bytes);
  }
  const experts = plan.layers.reduce((sum, layer) => sum + layer.experts * layer.expert_bytes, 0);
  assert.equal(plan.ram.expert_bytes, experts);
  assert.ok(plan.ram.dense_bytes + experts <= plan.model.bytes);
  await page.getByRole('region', {name: 'GPU 1 (simulated)'}).getByText('4 MiB').first().waitFor();
  await page.getByRole('region', {name: 'RAM', exact: true}).getByText('12.8 MiB').waitFor();
  assert.equal(await page.locator('.layers tbody tr').count(), plan.layers.length);
  await visit.leave(page);
});

test('a phone shows all of it without sideways scrolling, large enough to touch', async () => {
  const page = await visit.page({viewport: {width: 360, height: 740}, isMobile: true, hasTouch: true, deviceScaleFactor: 2});
  for (const view of ['Chat', 'Cache', 'Plan']) {
    await page.getByRole('navigation').getByRole('link', {name: view}).tap();
    await page.locator(view === 'Chat' ? '#prompt' : '.panels').waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360, view);
    const small = await page.locator('button:visible, a:visible').evaluateAll((elements) =>
      elements.map((element) => ({text: element.textContent, box: element.getBoundingClientRect()}))
        .filter(({text, box}) => text !== 'Skip to the content' && (box.width < 24 || box.height < 24))
        .map(({text}) => text),
    );
    assert.deepEqual(small, [], view);
  }
  await page.getByRole('button', {name: 'Conversations'}).tap();
  await page.getByRole('dialog', {name: 'Conversations'}).getByRole('button', {name: 'New chat'}).tap();
  await page.locator('#prompt').waitFor();
  await visit.leave(page);
});

test('colours follow the system, or the choice', async () => {
  const page = await visit.page({colorScheme: 'dark'});
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await ground();
  await page.emulateMedia({colorScheme: 'light'});
  await until(async () => (await ground()) !== dark);
  const light = await ground();
  for (const expected of [light, dark]) {
    await page.getByRole('button', {name: /^Colours/}).click();
    await until(async () => (await ground()) === expected);
  }
  await visit.leave(page);
});
