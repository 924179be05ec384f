const kUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
const kRates = ['B/s', 'kB/s', 'MB/s', 'GB/s', 'TB/s'];

function scaled(value: number, base: number, units: string[]): string {
  let step = 0;
  while (step + 1 < units.length && Math.round(value) >= base) {
    value /= base;
    ++step;
  }
  return `${significant(step === 0 ? Math.round(value) : value)} ${units[step]}`;
}

/** Three digits where there are that many: 1.23, 12.3, 123, 1,234. */
export function significant(value: number): string {
  if (value === 0) return '0';
  const digits = Number.isInteger(value) ? 0 : Math.abs(value) < 9.995 ? 2 : Math.abs(value) < 99.95 ? 1 : 0;
  return value.toLocaleString('en-GB', {minimumFractionDigits: digits, maximumFractionDigits: digits});
}

/** Of memory: powers of 1024. */
export const bytes = (value: number): string => scaled(value, 1024, kUnits);
/** Of links: powers of 1000. */
export const byteRate = (value: number): string => scaled(value, 1000, kRates);
export const percent = (share: number): string => `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;
export const count = (value: number): string => value.toLocaleString('en-GB');

export function plural(value: number, word: string): string {
  return `${count(value)} ${word}${value === 1 ? '' : 's'}`;
}

/** "just now", "4 min", "3 h", "12 Mar": how long ago a moment was. */
export function ago(moment: number, now: number): string {
  const minutes = Math.floor((now - moment) / 60_000);
  if (minutes < 1) return 'just now';
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h`;
  return new Date(moment).toLocaleDateString('en-GB', {day: 'numeric', month: 'short'});
}
