import {keptStore} from '../store';

/** A number that requests may carry, under the server's name for it. */
export interface Setting {
  name: string;
  label: string;
  hint: string;
  least: number;
  most: number;
  step: number;
}

export const settings: Setting[] = [
  {name: 'temperature', label: 'Temperature', hint: '0 always takes the likeliest token', least: 0, most: 5, step: 0.05},
  {name: 'top_k', label: 'Top k', hint: 'only the k likeliest; 0: all', least: 0, most: 1000, step: 1},
  {name: 'top_p', label: 'Top p', hint: 'the likeliest up to this sum', least: 0, most: 1, step: 0.01},
  {name: 'min_p', label: 'Min p', hint: 'at least this share of the likeliest', least: 0, most: 1, step: 0.01},
  {name: 'repeat_penalty', label: 'Repeat penalty', hint: '1 is off', least: 0.5, most: 3, step: 0.05},
  {name: 'presence_penalty', label: 'Presence penalty', hint: '0 is off', least: -2, most: 2, step: 0.1},
  {name: 'frequency_penalty', label: 'Frequency penalty', hint: '0 is off', least: -2, most: 2, step: 0.1},
  {name: 'max_tokens', label: 'Longest answer', hint: 'tokens; -1: no limit', least: -1, most: 1_000_000, step: 1},
  {name: 'seed', label: 'Seed', hint: '-1: another one each time', least: -1, most: 4_294_967_295, step: 1},
];

export interface ChatSettings {
  system: string;
  values: Record<string, number>; // what is not here is left to the server
}

export const chatSettings = keptStore<ChatSettings>('coterie.settings', {system: '', values: {}});

/** Reads a field; nothing for one left empty, a line for one that cannot be used. */
export function readSetting(setting: Setting, text: string): {value?: number; problem?: string} {
  if (text.trim() === '') return {};
  const value = Number(text);
  const whole = setting.step === 1;
  if (Number.isNaN(value) || value < setting.least || value > setting.most || (whole && !Number.isInteger(value))) {
    return {problem: `${whole ? 'A whole number' : 'A number'} from ${setting.least} to ${setting.most}`};
  }
  return {value};
}
