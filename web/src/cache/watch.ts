import {getJson} from '../api/client';
import {Failure} from '../api/failure';
import type {Cache} from '../api/types';
import {Store} from '../store';
import {ratesBetween, warm, type LayerHeat, type Rates} from './heat';

const kLookEvery = 1000; // milliseconds
const kMoments = 180;

/** What the cache view shows: the last look, and what was between the looks before. */
export interface Watched {
  cache?: Cache;
  heat: LayerHeat[];
  moments: {time: number; rates: Rates}[]; // latest last
  problem?: string;
}
export const watched = new Store<Watched>({heat: [], moments: []});

let timer = 0;
let watchers = 0;

/** Looks every second while somebody watches and the page is seen; gives what ends it. */
export function watchCache(): () => void {
  if (watchers++ === 0) {
    document.addEventListener('visibilitychange', lookIfSeen);
    lookIfSeen();
  }
  return () => {
    if (--watchers > 0) return;
    document.removeEventListener('visibilitychange', lookIfSeen);
    window.clearTimeout(timer);
  };
}

function lookIfSeen(): void {
  window.clearTimeout(timer);
  if (document.visibilityState === 'visible') void look();
}

async function look(): Promise<void> {
  const began = performance.now();
  try {
    const cache = await getJson<Cache>('/cache');
    watched.update((before) => next(before, cache));
  } catch (error) {
    const problem = error instanceof Failure ? error.message : String(error);
    watched.update((before) => ({...before, problem}));
    if (error instanceof Failure && error.kind === 'key') return; // until the view is opened again
  }
  // A slow answer means a large cache or a busy machine: then less often.
  const pause = Math.max(kLookEvery, 5 * (performance.now() - began));
  if (watchers > 0) timer = window.setTimeout(lookIfSeen, pause);
}

function next(before: Watched, cache: Cache): Watched {
  const known = before.cache && before.cache.seconds < cache.seconds ? before.cache : undefined;
  const heat = warm(before.heat, known, cache);
  if (!known) return {cache, heat, moments: []};
  const moment = {time: Date.now() / 1000, rates: ratesBetween(known, cache)};
  return {cache, heat, moments: [...before.moments, moment].slice(-kMoments)};
}
