import {colour} from '../shell/theme';

const kShades = 32;
type Rgb = [number, number, number];

function parse(hex: string): Rgb {
  const value = Number.parseInt(hex.slice(1), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

function ramp(from: string, to: string): string[] {
  const [a, b] = [parse(from), parse(to)];
  return Array.from({length: kShades}, (_, i) => {
    const part = (j: 0 | 1 | 2) => Math.round(a[j] + ((b[j] - a[j]) * i) / (kShades - 1));
    return `rgb(${part(0)} ${part(1)} ${part(2)})`;
  });
}

/** Colours of the heat map, cold to hot: of each device's experts, of missed ones, and of those in RAM alone. */
export interface Palette {
  devices: string[][];
  missed: string[];
  ram: string[];
  ink: string;
  cursor: string;
}

export const kDeviceColours = 4;

export function readPalette(): Palette {
  const devices = Array.from({length: kDeviceColours}, (_, i) => ramp(colour(`--gpu-${i}`), colour(`--gpu-${i}-hot`)));
  return {
    devices,
    missed: ramp(colour('--cell'), colour('--missed')),
    ram: ramp(colour('--cell'), colour('--ram-hot')),
    ink: colour('--ink-2'),
    cursor: colour('--ink'),
  };
}

export function pick(shades: string[] | undefined, share: number): string {
  return shades?.[Math.min(kShades - 1, Math.round(share * (kShades - 1)))] ?? '';
}
