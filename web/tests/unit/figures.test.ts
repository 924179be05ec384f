import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';
import type {Cache} from '../../src/api/types';
import {hottest, ratesBetween, shade, warm} from '../../src/cache/heat';
import {readSetting, settings} from '../../src/chat/settings';
import {ago, byteRate, bytes, percent, plural, significant} from '../../src/text/format';

test('figures have three digits and the right unit', () => {
  assert.deepEqual([0, 1.234, 9.999, 12.34, 99.96, 123.4, 1234].map(significant), ['0', '1.23', '10.0', '12.3', '100', '123', '1,234']);
  assert.deepEqual([0, 1023, 1024, 1536, 5 * 1024 ** 3, 2 ** 60].map(bytes), ['0 B', '1,023 B', '1 KiB', '1.50 KiB', '5 GiB', '1,048,576 TiB']);
  assert.deepEqual([0, 999.6, 1000, 24e9].map(byteRate), ['0 B/s', '1.00 kB/s', '1 kB/s', '24 GB/s']);
  assert.deepEqual([0, 0.004, 0.5, 1].map(percent), ['0 %', '0.4 %', '50 %', '100 %']);
  assert.deepEqual([1, 2].map((n) => plural(n, 'request')), ['1 request', '2 requests']);
  assert.deepEqual([0, 59_000, 61_000, 7_200_000].map((past) => ago(1e9 - past, 1e9)), ['just now', 'just now', '1 min', '2 h']);
});

function cache(seconds: number, uses: number[], moved: number): Cache {
  return {
    seconds,
    experts_used: 2,
    hits: uses[0]!,
    misses: uses[1]!,
    work: {waiting: 0, running: 1, prompt_tokens: 0, cached_tokens: 0, generated_tokens: 10 * seconds, kept_sequences: 0},
    memory: {kv_bytes: 0, kv_used_bytes: 0, ram_bytes: 0},
    devices: [{id: 0, resident: 1, slot_bytes: 0, hits: 0, uploads: 0, fetches: 0, moved_bytes: moved, evictions: 0, failures: 0, lost: false}],
    layers: [{layer: 1, experts: 2, expert_bytes: 1, slots: [1], device: [0, -1], uses, misses: [0, uses[1]!]}],
  };
}

test('experts warm up with use and cool down without', () => {
  const [first, second, third] = [cache(1, [10, 0], 0), cache(2, [40, 10], 5e6), cache(12, [40, 10], 5e6)];
  const cold = warm([], undefined, first);
  assert.equal(hottest(cold), 1);
  const hot = warm(cold, first, second);
  assert.deepEqual([...hot[0]!.uses], [30, 10]);
  const cool = warm(hot, second, third);
  assert.ok(cool[0]!.uses[0]! < 3 && cool[0]!.uses[0]! > 0, String(cool[0]!.uses[0]));
  assert.deepEqual([...warm(hot, second, cache(1, [4, 0], 0))[0]!.uses], [0, 0], 'a server that began anew');
  assert.ok(shade(0, 30) === 0 && shade(30, 30) === 1 && shade(3, 30) > 0.3);
});

test('rates are what happened in between', () => {
  const rates = ratesBetween(cache(1, [10, 0], 0), cache(3, [40, 10], 8e6));
  assert.deepEqual(rates, {hitRate: 0.75, written: 10, read: 0, link: [4e6]});
  assert.equal(ratesBetween(cache(1, [1, 1], 0), cache(2, [1, 1], 0)).hitRate, null);
});

test('a setting is a number in its range or a line that says which', () => {
  const byName = (name: string) => settings.find((setting) => setting.name === name)!;
  assert.deepEqual(readSetting(byName('temperature'), ' '), {});
  assert.deepEqual(readSetting(byName('temperature'), '0.7'), {value: 0.7});
  assert.deepEqual(readSetting(byName('top_p'), '1.5'), {problem: 'A number from 0 to 1'});
  assert.deepEqual(readSetting(byName('top_k'), '2.5'), {problem: 'A whole number from 0 to 1000'});
  assert.match(readSetting(byName('seed'), 'x').problem ?? '', /whole number/);
});

/** WCAG's contrast of two colours. */
function contrast(a: string, b: string): number {
  const luminance = (hex: string) => {
    const [r, g, b] = [1, 3, 5].map((at) => {
      const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
      return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
  };
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high! + 0.05) / (low! + 0.05);
}

test('text can be read on every ground, light and dark', () => {
  const css = readFileSync(`${process.cwd()}/src/styles/tokens.css`, 'utf8');
  for (const block of css.split(':root').slice(1)) {
    const colours = Object.fromEntries([...block.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map((found) => [found[1], found[2]!]));
    assert.ok(colours.ink, 'a block without colours');
    for (const text of ['ink', 'ink-2', 'ink-3', 'accent', 'problem', 'code-word', 'code-text', 'code-number', 'code-name', 'code-note']) {
      for (const ground of ['paper', 'surface', 'sunk']) {
        if (text.startsWith('code') && ground !== 'surface') continue;
        const reached = contrast(colours[text]!, colours[ground]!);
        assert.ok(reached >= 4.5, `--${text} on --${ground}: ${reached.toFixed(2)}`);
      }
    }
    assert.ok(contrast(colours['on-accent']!, colours.accent!) >= 4.5);
  }
});
