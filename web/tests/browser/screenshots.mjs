// Takes the pictures of docs/server.md: node tests/browser/screenshots.mjs [folder]
import {fileURLToPath} from 'node:url';
import {Server, sleep} from '../../../tests/clients/server.mjs';
import {ask, Visit} from './visit.mjs';

const folder = process.argv[2] ?? fileURLToPath(new URL('../../../docs', import.meta.url));
const phone = {viewport: {width: 390, height: 780}, isMobile: true, hasTouch: true};

async function chat(page, name) {
  await ask(page, 'What is a volcano?');
  await ask(page, 'What is a glacier?');
  await page.screenshot({path: `${folder}/page-chat-${name}.png`});
}

async function cache(page, server, name) {
  await page.getByRole('navigation').locator('visible=true').getByRole('link', {name: 'Cache'}).click();
  await page.locator('.heat canvas').waitFor();
  let busy = true;
  const people = ['A volcano is', 'A glacier is'].map(async (prompt) => {
    while (busy) await server.post('/v1/completions', {prompt, max_tokens: 240, ignore_eos: true});
  });
  await sleep(12_000);
  await page.screenshot({path: `${folder}/page-cache-${name}.png`});
  busy = false;
  await Promise.all(people);
}

async function plan(page, name) {
  await page.getByRole('navigation').locator('visible=true').getByRole('link', {name: 'Plan'}).click();
  await page.locator('.layers').waitFor();
  await page.screenshot({path: `${folder}/page-plan-${name}.png`});
}

const server = await Server.start('--fake-gpu', '2x4M@10G/s', '--expert-cache', '28', '--cache-profile', 'off', '--seed', '7', '-t', '1');
const visit = await Visit.begin(server);
try {
  for (const [name, options] of Object.entries({light: {}, dark: {colorScheme: 'dark'}, phone})) {
    const page = await visit.page(options);
    await chat(page, name);
    await cache(page, server, name);
    if (name === 'light') await plan(page, name);
    await visit.leave(page);
  }
} finally {
  await visit.end();
  await server.stop();
}
