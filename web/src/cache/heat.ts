import type {Cache} from '../api/types';

/** How warm each expert is: its uses, fading within seconds. */
export interface LayerHeat {
  layer: number;
  uses: Float64Array; // [experts]
  misses: Float64Array;
}

const kFadeSeconds = 4;

/** The heat after another look at the cache. Counters that went back are a server that began anew. */
export function warm(heat: LayerHeat[], before: Cache | undefined, now: Cache): LayerHeat[] {
  const seconds = before ? now.seconds - before.seconds : 0;
  const known = before && seconds >= 0 && before.layers.length === now.layers.length ? before : undefined;
  const kept = known ? Math.exp(-seconds / kFadeSeconds) : 0;
  return now.layers.map((layer, index) => {
    const earlier = known?.layers[index];
    const grown = (name: 'uses' | 'misses') =>
      Float64Array.from(layer[name], (value, expert) => {
        const old = kept * (heat[index]?.[name][expert] ?? 0);
        return old + (earlier ? Math.max(0, value - (earlier[name][expert] ?? 0)) : 0);
      });
    return {layer: layer.layer, uses: grown('uses'), misses: grown('misses')};
  });
}

/** The largest of all, at least 1. */
export function hottest(heat: LayerHeat[]): number {
  return heat.reduce((most, layer) => layer.uses.reduce((a, b) => Math.max(a, b), most), 1);
}

/** In [0, 1]: by the square root, since uses of experts fall steeply. */
export function shade(value: number, most: number): number {
  return value < 0.05 ? 0 : Math.sqrt(value / Math.max(most, value));
}

/** What happened between two looks, for each second. */
export interface Rates {
  hitRate: number | null; // nothing was used: nothing to tell
  written: number; // tokens
  read: number;
  link: number[]; // [devices] bytes
}

export function ratesBetween(before: Cache, now: Cache): Rates {
  const seconds = Math.max(now.seconds - before.seconds, 1e-3);
  const rate = (later: number, earlier: number) => Math.max(0, later - earlier) / seconds;
  const hits = now.hits - before.hits;
  const all = hits + now.misses - before.misses;
  return {
    hitRate: all > 0 ? hits / all : null,
    written: rate(now.work.generated_tokens, before.work.generated_tokens),
    read: rate(now.work.prompt_tokens, before.work.prompt_tokens),
    link: now.devices.map((device, i) => rate(device.moved_bytes, before.devices[i]?.moved_bytes ?? 0)),
  };
}
