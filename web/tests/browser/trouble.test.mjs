import assert from 'node:assert/strict';
import {test} from 'node:test';
import {Server, until} from '../../../tests/clients/server.mjs';
import {button, Visit} from './visit.mjs';

const refused = /^console: Failed to load resource/; // the browser's own note of an error's status

test('a key is asked for, a full queue and a lost server are told', async () => {
  const server = await Server.start('--api-key', 'open sesame', '-np', '1', '--queue', '1', '--ignore-eos', '-t', '1');
  const visit = await Visit.begin(server);
  const authorised = {authorization: 'Bearer open sesame'};
  try {
    const page = await visit.page();
    const dialog = page.getByRole('dialog', {name: 'API key'});
    await dialog.getByLabel('Key', {exact: true}).fill('wrong');
    await page.keyboard.press('Enter');
    await dialog.getByText('That key is not one').waitFor();
    await dialog.getByLabel('Key', {exact: true}).fill('open sesame');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', {name: 'Demo dictionary 29M'}).waitFor();
    assert.equal(await dialog.isVisible(), false);

    const body = {prompt: 'A volcano is', max_tokens: 450};
    const others = [1, 2].map(() => server.post('/v1/completions', body, authorised));
    await until(async () => (await (await server.get('/cache', authorised)).json()).work.waiting === 1);
    await page.fill('#prompt', 'And me?');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('the queue is full. Try again in').waitFor();
    await Promise.all(others);
    await button(page, 'Another answer').click(); // in place of the one that did not come about
    await page.locator('.prose').waitFor();
    await page.keyboard.press('Escape');
    assert.equal(await page.getByText('2/2').count(), 0);

    await server.stop();
    await button(page, 'Another answer').click();
    await page.getByRole('alert').getByText('does not answer. Is coterie serve still running?').waitFor();
    await visit.leave(page, refused);
  } finally {
    await visit.end();
    server.process.kill('SIGKILL');
  }
});

test('a server without devices says how to get some', async () => {
  const server = await Server.start();
  const visit = await Visit.begin(server);
  try {
    const page = await visit.page({at: '#cache'});
    await page.getByText('No device holds experts').waitFor();
    await page.getByText('--fake-gpu 2x4M@10G/s --expert-cache 28').waitFor();
    await page.locator('.heat canvas').waitFor();
    await visit.leave(page);
  } finally {
    await visit.end();
    await server.stop();
  }
});

test('nothing is taken from elsewhere, and no HTML that was not sanitised', async () => {
  const server = await Server.start();
  try {
    const policy = (await server.get('/')).headers.get('content-security-policy');
    assert.match(policy, /default-src 'none'/);
    assert.match(policy, /require-trusted-types-for 'script'/);
    assert.doesNotMatch(policy, /unsafe|\*|http/);
  } finally {
    await server.stop();
  }
});
