import {keptStore} from '../store';

export type Theme = 'auto' | 'light' | 'dark';
export const theme = keptStore<Theme>('coterie.theme', 'auto');

const order: Theme[] = ['auto', 'light', 'dark'];
export const nextTheme = (now: Theme): Theme => order[(order.indexOf(now) + 1) % order.length] ?? 'auto';

const system = matchMedia('(prefers-color-scheme: dark)');

function apply(): void {
  const dark = theme.value === 'dark' || (theme.value === 'auto' && system.matches);
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
}

export function keepTheme(): void {
  apply();
  watchColours(apply);
}

/** Tells whenever colours may have changed, for what is drawn on a canvas. */
export function watchColours(listener: () => void): () => void {
  system.addEventListener('change', listener);
  const unwatch = theme.watch(listener);
  return () => {
    system.removeEventListener('change', listener);
    unwatch();
  };
}

/** The value of a custom property that is a colour. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
