import {useEffect, useMemo, useRef, useState} from 'preact/hooks';
import type {Cache, CacheLayer} from '../api/types';
import {watchColours} from '../shell/theme';
import {bytes, count} from '../text/format';
import {hottest, shade, type LayerHeat} from './heat';
import {pick, readPalette, type Palette} from './palette';

const kLabels = 30; // pixels left of the first expert
const kTop = 18; // pixels above the first layer
const kMostHeight = 420; // pixels that all layers take, where they are not too many

interface Cell {
  row: number;
  column: number;
}

/** Sizes in pixels. */
interface Grid {
  width: number; // of a cell, gap included
  height: number;
  gap: number;
  columns: number;
  rows: number;
}

function gridFor(cache: Cache, room: number): Grid {
  const columns = Math.max(1, ...cache.layers.map((layer) => layer.experts));
  const width = Math.min(20, Math.max(4, Math.floor((room - kLabels) / columns)));
  const height = Math.max(7, Math.min(24, Math.floor(kMostHeight / Math.max(1, cache.layers.length))));
  return {width, height, gap: width > 6 ? 2 : 1, columns, rows: cache.layers.length};
}

/** The experts of each layer as the columns show them. */
function arrange(cache: Cache, byUse: boolean): number[][] {
  return cache.layers.map((layer) => {
    const experts = Array.from({length: layer.experts}, (_, expert) => expert);
    return byUse ? experts.sort((a, b) => (layer.uses[b] ?? 0) - (layer.uses[a] ?? 0) || a - b) : experts;
  });
}

function colourOf(layer: CacheLayer, heat: LayerHeat | undefined, expert: number, most: number, cpuOnly: boolean, palette: Palette): string {
  const device = layer.device[expert] ?? -1;
  const uses = shade(heat?.uses[expert] ?? 0, most);
  if (device >= 0) return pick(palette.devices[device % palette.devices.length], uses);
  return pick(cpuOnly ? palette.ram : palette.missed, uses);
}

function draw(canvas: HTMLCanvasElement, grid: Grid, cache: Cache, heat: LayerHeat[], order: number[][], palette: Palette, cell: Cell | undefined): void {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [kLabels + grid.columns * grid.width, kTop + grid.rows * grid.height];
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext('2d');
  if (!context) return;
  context.scale(ratio, ratio);
  drawLabels(context, grid, cache, palette);
  const most = hottest(heat);
  cache.layers.forEach((layer, row) => {
    order[row]?.forEach((expert, column) => {
      context.fillStyle = colourOf(layer, heat[row], expert, most, cache.devices.length === 0, palette);
      context.fillRect(kLabels + column * grid.width, kTop + row * grid.height, grid.width - grid.gap, grid.height - grid.gap);
    });
  });
  if (!cell) return;
  context.strokeStyle = palette.cursor;
  context.lineWidth = 1.5;
  context.strokeRect(kLabels + cell.column * grid.width - 1, kTop + cell.row * grid.height - 1, grid.width - grid.gap + 2, grid.height - grid.gap + 2);
}

function drawLabels(context: CanvasRenderingContext2D, grid: Grid, cache: Cache, palette: Palette): void {
  context.font = '11px ui-monospace, monospace';
  context.fillStyle = palette.ink;
  context.textBaseline = 'middle';
  context.textAlign = 'right';
  const everyRow = Math.ceil(12 / grid.height);
  cache.layers.forEach((layer, row) => {
    if (row % everyRow === 0) context.fillText(String(layer.layer), kLabels - 8, kTop + (row + 0.5) * grid.height - grid.gap / 2);
  });
  context.textAlign = 'left';
  const everyColumn = grid.width >= 10 ? 8 : 16;
  for (let column = 0; column < grid.columns; column += everyColumn) {
    context.fillText(String(column), kLabels + column * grid.width, 7);
  }
}

/** What one cell shows, in words. */
function describe(cache: Cache, order: number[][], {row, column}: Cell): string {
  const layer = cache.layers[row];
  const expert = order[row]?.[column];
  if (!layer || expert === undefined) return '';
  const device = layer.device[expert] ?? -1;
  const place = device >= 0 ? `on GPU ${device}` : 'in RAM only';
  const missed = cache.devices.length > 0 ? `, ${count(layer.misses[expert] ?? 0)} of them missed` : '';
  return `Layer ${layer.layer}, expert ${expert}: ${place}, ${bytes(layer.expert_bytes)}; ${count(layer.uses[expert] ?? 0)} uses${missed}`;
}

const steps: Record<string, [number, number]> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
};

function useRoom() {
  const box = useRef<HTMLDivElement>(null);
  const [room, setRoom] = useState(0);
  useEffect(() => {
    if (!box.current) return;
    const observer = new ResizeObserver(([entry]) => setRoom(Math.floor(entry?.contentRect.width ?? 0)));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  return {box, room};
}

/** Layers by experts: where each is, and how much it is used. The arrow keys walk through it. */
export function HeatMap({cache, heat}: {cache: Cache; heat: LayerHeat[]}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const {box, room} = useRoom();
  const [palette, setPalette] = useState(readPalette);
  const [cell, setCell] = useState<Cell>();
  const [byUse, setByUse] = useState(false);
  const order = useMemo(() => arrange(cache, byUse), [cache, byUse]);
  const grid = gridFor(cache, room);
  useEffect(() => watchColours(() => setPalette(readPalette())), []);
  useEffect(() => {
    if (canvas.current && room > 0) draw(canvas.current, grid, cache, heat, order, palette, cell);
  });
  const at = (row: number, column: number) => {
    const inside = row >= 0 && row < grid.rows && column >= 0 && column < grid.columns;
    if (inside) setCell({row, column});
  };
  const onPointer = (event: PointerEvent) =>
    at(Math.floor((event.offsetY - kTop) / grid.height), Math.floor((event.offsetX - kLabels) / grid.width));
  const onKey = (event: KeyboardEvent) => {
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    if (cell) at(cell.row + step[0], cell.column + step[1]);
    else setCell({row: 0, column: 0});
  };
  return (
    <figure class="heat">
      <div class="heat-box" ref={box} tabIndex={0} role="application" aria-label="Experts by layer; the arrow keys walk through them" onKeyDown={onKey}>
        <canvas ref={canvas} onPointerMove={onPointer} onPointerDown={onPointer} onPointerLeave={() => setCell(undefined)} />
      </div>
      <figcaption>
        <output aria-live="polite">{cell ? describe(cache, order, cell) : 'Each row is a layer, each cell an expert.'}</output>
        <label class="tick">
          <input type="checkbox" checked={byUse} onChange={(event) => setByUse(event.currentTarget.checked)} />
          Most used first
        </label>
      </figcaption>
    </figure>
  );
}
