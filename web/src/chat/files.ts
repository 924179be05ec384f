import {bytes} from '../text/format';
import type {TextFile} from './tree';

const kMostBytes = 1 << 20;

/** Reads a file as text; throws a line for people where it is none, or too long. */
export async function readTextFile(file: File): Promise<TextFile> {
  if (file.size > kMostBytes) {
    throw new Error(`${file.name} has ${bytes(file.size)}; files up to ${bytes(kMostBytes)} can be attached.`);
  }
  try {
    const text = new TextDecoder('utf-8', {fatal: true}).decode(await file.arrayBuffer());
    if (!text.includes('\0')) return {name: file.name, text};
  } catch {
    // Not UTF-8: told below.
  }
  throw new Error(`${file.name} is not a text file; only text can be attached.`);
}
