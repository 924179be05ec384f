// Opens the page in a browser and sees to it that it keeps to itself.
import assert from 'node:assert/strict';
import {chromium} from 'playwright-core';

const executablePath = process.env.COTERIE_BROWSER ?? '/usr/bin/chromium';

/** A browser on a server's page. */
export class Visit {
  static async begin(server) {
    const visit = new Visit();
    visit.server = server;
    // Without its own sandbox, which needs rights that a container may not give: it sees this page alone.
    visit.browser = await chromium.launch({executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage']});
    return visit;
  }

  /** A new person with empty storage. What must not happen while they are here is noted in `faults`. */
  async page(options = {}) {
    const context = await this.browser.newContext({viewport: {width: 1280, height: 820}, ...options});
    context.setDefaultTimeout(20_000);
    const faults = [];
    context.on('request', (request) => {
      if (!request.url().startsWith(`${this.server.url}/`)) faults.push(`asked for ${request.url()}`);
    });
    context.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) faults.push(`console: ${message.text()}`);
    });
    context.on('weberror', (error) => faults.push(`thrown: ${error.error()}`));
    const page = await context.newPage();
    await page.goto(`${this.server.url}/${options.at ?? ''}`);
    await page.locator('#prompt, .view').first().waitFor();
    return Object.assign(page, {faults});
  }

  /** Ends a person's visit, which must have been without fault but for those that match `expected`. */
  async leave(page, expected = /^$/) {
    assert.deepEqual(page.faults.filter((fault) => !expected.test(fault)), []);
    await page.context().close();
  }

  end() {
    return this.browser.close();
  }
}

export const button = (page, name) => page.getByRole('button', {name, exact: true});

/** Asks a question and waits until the answer is complete: only then can something be done with it. */
export async function ask(page, text) {
  const before = await page.locator('.message.assistant').count();
  await page.fill('#prompt', text);
  await page.keyboard.press('Enter');
  await page.locator('.message.assistant .actions').nth(before).waitFor();
}

/** Limits answers through the settings. */
export async function limitAnswers(page, tokens) {
  await page.getByRole('button', {name: /^Settings/}).click();
  await page.getByLabel('Longest answer').fill(String(tokens));
  await page.keyboard.press('Escape');
}
